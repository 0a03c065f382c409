# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# ./dev roots: build, install and use assay where nothing is but a bare Debian, busybox, a container,
# or an emulated arm64 machine.  ./dev reads this file; ./dev package and ./dev release use its roots to
# build for other architectures.

# shellcheck disable=SC2034 # ./dev and verbs.sh use it
packages_short=(debootstrap debhelper dpkg-dev)

# ---- bare roots ----

roots_folder() { echo "${ASSAY_ROOTS:-$PWD/out/roots}"; }

# What cannot be tried here is not a failure; the exit code is the one that test programs use for it.
cannot() {
    say "skipped: $*"
    exit 77
}

# bare_root SUITE [SECONDS]: a minimal Debian in out/roots/SUITE, made once and not changed later.
bare_root() {
    local root log
    root=$(roots_folder)/$1 log=$(roots_folder)/$1.log
    [ ! -e "$root/.whole" ] || return 0
    need debootstrap
    say "debootstrap $1"
    mkdir -p "$(roots_folder)/debs"
    as_root rm -rf --one-file-system "$root"
    as_root unshare --mount --propagation private timeout "${2:-3600}" debootstrap --variant=minbase \
        --cache-dir="$(roots_folder)/debs" "$1" "$root" \
        "${ASSAY_MIRROR:-http://deb.debian.org/debian}" >"$log" 2>&1 || {
        drop_root "$root"
        cannot "debootstrap of $1 failed, or took more than ${2:-3600} s: $(tail -1 "$log"); $log has all of it"
    }
    as_root touch "$root/.whole"
}

# copy_root SUITE NAME: prints the path of a copy to be spoilt.
copy_root() {
    local copy
    copy=$(roots_folder)/$2
    as_root rm -rf --one-file-system "$copy"
    as_root cp -a --reflink=auto "$(roots_folder)/$1" "$copy"
    as_root cp /etc/resolv.conf "$copy/etc/resolv.conf"
    as_root chroot "$copy" useradd --create-home someone
    echo "$copy"
}

drop_root() { as_root rm -rf --one-file-system "$1"; }

# in_root ROOT COMMAND…: in it, with /proc, /sys and /dev, which are gone when the command ends.  All
# roots share the packages that they have downloaded.
in_root() {
    as_root mkdir -p "$(roots_folder)/debs"
    # shellcheck disable=SC2016
    as_root unshare --mount --propagation private sh -c '
        debs=$1 root=$2
        shift 2
        mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" &&
            mount --rbind /dev "$root/dev" || exit 1
        [ ! -d "$root/var/cache/apt/archives" ] || mount --bind "$debs" "$root/var/cache/apt/archives" || exit 1
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
            LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive ASSAY_COMMIT="$ASSAY_COMMIT" \
            SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" chroot "$root" "$@"' sh "$(roots_folder)/debs" "$@"
}

as_someone() {
    local root=$1
    shift
    in_root "$root" setpriv --reuid someone --regid someone --clear-groups env HOME=/home/someone "$@"
}

# ---- what is tried ----

roots_results=()
roots_only='' # steps whose name contains this

# try NAME COMMAND…: notes how it went and how long it took, also in out/roots/results, and goes on.
try() {
    local name=$1 begun=$SECONDS code
    shift
    [[ $name == *"$roots_only"* ]] || return 0
    say "$name"
    set +e
    (
        set -e
        "$@"
    )
    code=$?
    set -e
    case "$code" in
    0) name="ok       $((SECONDS - begun)) s: $name" ;;
    77) name="skipped  $((SECONDS - begun)) s: $name" ;;
    *) name="FAILED   $((SECONDS - begun)) s: $name" ;;
    esac
    roots_results+=("$name")
    echo "$(date -u +%FT%TZ) $ASSAY_COMMIT $name" >>"$(roots_folder)/results"
}

# Prints what try noted; fails when something failed.
roots_verdict() {
    [ ${#roots_results[@]} -gt 0 ] || die "no step of ./dev roots has '$roots_only' in its name"
    printf '%s\n' "${roots_results[@]}"
    ! printf '%s\n' "${roots_results[@]}" | grep -q ^FAILED
}

# ./dev roots [--short | --only WORD | --in SUITE COMMAND…] [SUITE…]: in a bare Debian 12 and 13 each, what
# README promises: the static program in use, in a root of nothing but busybox, in a container and in an
# emulated arm64 machine as well; then ./dev demo, the unit tests, the packages in use.  Needs root; half
# an hour.  --short: only the package, made from what build/ has, in a root of this machine's own release:
# two minutes.  --only: the steps whose name contains the word; roots and what was built in them are kept
# for the next call.  --in: runs a command in the checkout within a suite's root.
verb_roots() {
    [ "$(id -u)" -eq 0 ] || cannot "./dev roots needs root for debootstrap and chroot"
    local suites suite
    stamp
    mkdir -p "$(roots_folder)"
    case "${1:-}" in
    --short)
        roots_short
        return
        ;;
    --in)
        [ $# -gt 2 ] || die "usage: ./dev roots --in SUITE COMMAND…"
        roots_in "${@:2}"
        return
        ;;
    --only)
        [ $# -gt 1 ] || die "usage: ./dev roots --only WORD [SUITE…]"
        roots_only=$2
        shift 2
        ;;
    esac
    suites=("$@")
    [ ${#suites[@]} -gt 0 ] || suites=(bookworm trixie)
    for suite in "${suites[@]}"; do bare_root "$suite"; done
    try "a static program for $(uname -m)" verb_release "$(uname -m)"
    for suite in "${suites[@]}"; do try "$suite: the static program in use" roots_try_release "$suite"; done
    try "busybox alone: the static program in use" roots_try_busybox
    try "a container: the image built and used" roots_try_container
    if [ "$(uname -m)" = x86_64 ]; then
        try "packages for arm64" verb_package arm64
        try "a static program for arm64" verb_release arm64
        try "an emulated arm64 machine: the static program in use" roots_try_arm64
    fi
    for suite in "${suites[@]}"; do roots_try_sources "$suite"; done
    roots_verdict
}

# roots_in SUITE COMMAND…: in the checkout of a suite's root, with the sources as they are here.
roots_in() {
    local suite=$1 root
    shift
    bare_root "$suite"
    root=$(sources_root "$suite")
    # shellcheck disable=SC2016
    in_root "$root" sh -c 'cd /src && exec "$@"' sh "$@"
}

# sources_root SUITE: prints the path of a root with the sources in /src.  A whole run makes a new one; else
# the one of the call before is brought up to date, with what was built in it.
sources_root() {
    local root
    root=$(roots_folder)/$1-demo
    if [ ! -d "$root/src" ]; then
        root=$(copy_root "$1" "$1-demo")
        mkdir "$root/src"
    fi
    copy_sources "$root/src"
    echo "$root"
}

roots_short() {
    local suite root built=${BUILD:-$PWD/build} folder=$PWD/out/package/short
    [ -e "$built/build.ninja" ] || die "there is no $built yet; './dev build' makes it"
    # shellcheck disable=SC1091
    suite=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME") ||
        cannot "this is not Debian; a package is for the release that it was built on"
    bare_root "$suite" 150
    root=$(copy_root "$suite" "$suite-short")
    in_root "$root" apt-get update -qq || {
        drop_root "$root"
        cannot "no /proc, or no mirror, within $root"
    }
    package_from_build "$built" "$folder"
    use_package "$root" "$folder"
    drop_root "$root"
    say "$suite: the package was installed, used, upgraded and purged"
}

# The README's commands, and a package made there.
roots_try_sources() {
    local suite=$1 root
    root=$(roots_folder)/$suite-demo
    [ -n "$roots_only" ] || drop_root "$root"
    try "$suite: an ordinary user is told what is missing" roots_try_telling "$suite"
    try "$suite: ./dev demo (load before it: $(cut -d' ' -f1 /proc/loadavg))" roots_in "$suite" ./dev demo
    try "$suite: the unit tests" roots_in "$suite" python3 tests/lib/run.py gcc=build:unit
    try "$suite: an ordinary user: demo and quick tests" roots_try_user "$suite"
    try "$suite: ./dev install" roots_in "$suite" sh -c './dev install && cd /tmp && assay --version'
    try "$suite: the packages, and lintian" roots_in "$suite" ./dev package
    try "$suite: the packages installed, used, upgraded, purged" \
        roots_try_package "$suite" "$root/src/out/package/$(dpkg --print-architecture)"
    [ -n "${ASSAY_ROOTS_KEEP:-}$roots_only" ] || drop_root "$root"
}

# Nothing can be installed by a user without root: each missing tool is named.
roots_try_telling() {
    local root said word
    root=$(sources_root "$1")
    [ ! -e "$root/usr/bin/meson" ] || cannot "./dev demo has run in $root before: nothing is missing there"
    ! said=$(as_someone "$root" sh -c 'cd /src && ./dev build' 2>&1) || die "./dev build succeeded without a compiler"
    printf '%s\n' "$said"
    for word in 'a C compiler' meson ninja pkg-config 'package manager'; do
        [[ $said == *"$word"* ]] || die "./dev build does not mention: $word"
    done
}

# Somebody without sudo, at a path with a space and umlauts, where ./dev demo has installed what a build
# needs but nobody what the tests need: what is missing is skipped, the rest passes.
roots_try_user() {
    local root place='/home/someone/ein größerer Pfad'
    root=$(sources_root "$1")
    mkdir -p "$root$place"
    copy_sources "$root$place"
    in_root "$root" chown -R someone: "$place"
    # shellcheck disable=SC2016
    as_someone "$root" sh -e -c 'cd "$1"; umask 077; ./dev demo; ./dev test --quick' sh "$place"
}

# seconds_to_verdict ROOT PROGRAM BEGUN: a bar of the project, not a test: from the package or the
# archive to the first answer.
seconds_to_verdict() {
    # shellcheck disable=SC2016
    as_someone "$1" sh -c '
        cd && seq 1 200000 >text &&
            "$1" ab "gzip -1 -k -c text" "gzip -9 -k -c text" >said 2>&1 </dev/null && grep -q slower said ||
            { cat said; exit 1; }' sh "$2" || die "no verdict in $1"
    echo "from the package or archive to a verdict: $((SECONDS - $3)) s (bar 60 s)"
}

# use_package ROOT FOLDER: install, use, upgrade and purge the packages of a folder in a root.
use_package() {
    local root=$1 folder=$2 arch begun
    arch=$(dpkg --print-architecture)
    as_root mkdir -p "$root/debs/older"
    as_root cp "$folder"/assay_*_"$arch".deb "$folder"/assay-workloads_*_"$arch".deb packaging/smoke "$root/debs/"
    in_root "$root" sh -e /dev/stdin <<'END' || die "the packages cannot be prepared in $root"
apt-get update -qq
chmod 755 /debs /debs/smoke
# The same packages under an older version, to be upgraded.
for deb in /debs/*.deb; do
    dpkg-deb -R "$deb" /debs/unpacked
    version=$(dpkg-deb -f "$deb" Version)
    sed -i "s/$version/0.0.1/" /debs/unpacked/DEBIAN/control
    dpkg-deb -Zgzip -z1 -b /debs/unpacked "/debs/older/$(basename "$deb")" >/dev/null
    rm -r /debs/unpacked
done
END
    begun=$SECONDS
    in_root "$root" sh -c 'apt-get install -y -qq --no-install-recommends /debs/older/*.deb >/dev/null' ||
        die "the packages cannot be installed in $root"
    seconds_to_verdict "$root" assay "$begun"
    in_root "$root" sh -e /dev/stdin <<'END' || die "the packages do not work in $root"
cd /tmp
[ "$(dpkg-query -W -f '${Version}' assay)" = 0.0.1 ]
apt-get install -y -qq --no-install-recommends /debs/*.deb >/dev/null
[ "$(dpkg-query -W -f '${Version}' assay)" != 0.0.1 ]
dpkg --verify assay assay-workloads
setpriv --reuid someone --regid someone --clear-groups /debs/smoke assay
# What is loaded when needed is not there now, and says so with the package.
! assay serve 2>/tmp/said && grep 'apt install libmicrohttpd12' /tmp/said
! assay list --db postgresql://localhost/x 2>/tmp/said && grep 'apt install libpq5' /tmp/said
apt-get purge -y -qq assay assay-workloads >/dev/null
! dpkg-query -W assay 2>/dev/null | grep -q .
left=$(find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /debs -o -path /var/lib/dpkg -o -path /var/cache -o -path /var/log -o -path /tmp \) -prune -o -iname '*assay*' -print)
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
END
}

roots_try_package() {
    local root
    root=$(copy_root "$1" "$1-install")
    use_package "$root" "$2"
    drop_root "$root"
}

has_release() {
    [ -e "out/release/$1.tar.xz" ] || cannot "there is no out/release/$1.tar.xz; './dev release' makes it"
}

# put_release ROOT: unpacks the static program, and prints its path in the root.
put_release() {
    local name
    name=$(release_name "$(uname -m)")
    has_release "$name"
    mkdir -p "$1/opt" "$1/tmp"
    chmod 1777 "$1/tmp"
    tar -xJf "out/release/$name.tar.xz" -C "$1/opt"
    cp packaging/smoke "$1/opt/smoke"
    chmod 755 "$1/opt" "$1/opt/smoke"
    echo "/opt/$name/bin/assay"
}

# A bare Debian: nothing is installed but what was unpacked.
roots_try_release() {
    local root program begun
    root=$(copy_root "$1" "$1-release")
    begun=$SECONDS
    program=$(put_release "$root")
    seconds_to_verdict "$root" "$program" "$begun"
    as_someone "$root" /opt/smoke "$program" || die "the static program does not work in $1"
    drop_root "$root"
}

bare_busybox() {
    rm -rf --one-file-system "$1"
    mkdir -p "$1/bin" "$1/proc" "$1/sys" "$1/dev" "$1/etc"
    cp /bin/busybox "$1/bin/"
    chroot "$1" /bin/busybox --install -s /bin
}

# No libc, no Debian: busybox and the static program alone.
roots_try_busybox() {
    local root program
    need busybox-static
    root=$(roots_folder)/busybox
    bare_busybox "$root"
    program=$(put_release "$root")
    in_root "$root" /bin/sh /opt/smoke "$program" || die "the static program does not work beside busybox alone"
    drop_root "$root"
}

# Containerfile's image, made and used by podman; busybox is this machine's, no registry is asked.
roots_try_container() {
    local words=(run --rm --network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024) runtime reason=
    want podman buildah runc crun
    command -v podman >/dev/null || cannot "podman is not installed"
    need busybox-static
    bare_busybox "$(roots_folder)/image"
    tar -C "$(roots_folder)/image" -c . | podman import - localhost/assay-busybox >/dev/null 2>&1
    drop_root "$(roots_folder)/image"
    for runtime in crun runc ''; do
        [ -n "$runtime" ] || cannot "podman starts no container here: $reason"
        ! reason=$(podman --runtime "$runtime" "${words[@]}" localhost/assay-busybox true 2>&1) || break
    done
    podman build --build-arg BUSYBOX=localhost/assay-busybox --build-arg VERSION="$(version_here)" \
        --build-arg ARCH="$(uname -m)" -t localhost/assay . >/dev/null || die "Containerfile does not build"
    words=(--runtime "$runtime" "${words[@]}" --cap-add PERFMON --security-opt seccomp=unconfined
        -v "$PWD/packaging:/packaging:ro")
    podman "${words[@]}" localhost/assay --version || die "the image does not start"
    podman "${words[@]}" --entrypoint /bin/sh localhost/assay /packaging/smoke assay ||
        die "assay does not work in the container"
    podman rmi localhost/assay localhost/assay-busybox >/dev/null
}

# The static program for arm64, as the first process and as the command of an emulated machine whose
# only other program is busybox; the machine is started by the static program for this one.
roots_try_arm64() {
    local root name own
    name=$(release_name aarch64)
    has_release "$name"
    (need qemu-system-arm) || cannot "qemu-system-arm cannot be installed"
    bare_root bookworm
    root=$(copy_root bookworm bookworm-busybox-arm64)
    in_root "$root" sh -e -c 'dpkg --add-architecture arm64 && apt-get update -qq && cd /tmp
        apt-get download -qq busybox-static:arm64 && dpkg-deb -x busybox-static_*.deb /made'
    tar -xJf "out/release/$name.tar.xz" -C "$root/made"
    own=$root$(put_release "$root")
    "$own" vm fetch linux-image-arm64 || cannot "the kernel for it cannot be downloaded"
    "$own" vm run -k linux-image-arm64 --memory 1G --timeout 15m --guest "$root/made/$name/bin/assay" \
        --file "$root/made/bin/busybox:/bin/busybox" --file packaging/smoke:/bin/smoke -- \
        /bin/busybox sh -c '/bin/busybox --install -s /bin; sh /bin/smoke assay' ||
        die "the static program does not work in an emulated arm64 machine"
    drop_root "$root"
}
