# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The verbs of ./dev that make what others install: package, release, roots.  ./dev reads this file;
# say, die, need, as_root and the lists of packages are its.

packages_package=(build-essential dpkg-dev debhelper fakeroot lintian clang bpftool g++)

version_here() { sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build; }

# The commit as --version shows it; nothing in an unpacked archive.
commit_here() { git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null || true; }

# When what is built was written, so that a second build has the same bytes.
epoch_here() {
    echo "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}"
}

# For what is built without git at hand, here and in roots.
stamp() {
    export ASSAY_COMMIT SOURCE_DATE_EPOCH
    ASSAY_COMMIT=${ASSAY_COMMIT:-$(commit_here)}
    SOURCE_DATE_EPOCH=$(epoch_here)
}

# source_tree FOLDER: the sources alone, as they are here, committed or not.
source_tree() {
    rm -rf "$1"
    mkdir -p "$1"
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - 2>/dev/null
    else
        tar -c --exclude='./build*' --exclude=./out .
    fi | tar -x -C "$1"
}

# ./dev package [ARCHITECTURE]: Debian packages into out/package/.  For another architecture than
# this machine's they are made in a Debian root, which may have that one's libraries.
verb_package() {
    has_apt || die "Debian packages can only be built on Debian; ./dev release builds an archive for any Linux"
    local own arch tree
    stamp
    own=$(dpkg --print-architecture)
    arch=${1:-$own}
    tree=out/package/$arch/assay-$(version_here)
    source_tree "$tree"
    python3 debian/make-changelog "$(version_here)" "$(epoch_here)" >"$tree/debian/changelog"
    say "making packages for $arch"
    if [ "$arch" = "$own" ]; then
        need "${packages_build[@]}" "${packages_package[@]}"
        make_packages "$tree" "$arch"
        say "checking them with lintian"
        lintian --allow-root --fail-on error,warning "out/package/$arch"/*.changes
    else
        package_in_root "$tree" "$arch"
    fi
    say "made: $(cd "out/package/$arch" && echo ./*.deb)"
}

make_packages() {
    (
        cd "$1" || exit
        DEB_BUILD_OPTIONS="parallel=$(nproc)" dpkg-buildpackage --build=binary --no-sign --host-arch "$2" >../build.log 2>&1 || {
            tail -40 ../build.log >&2
            die "dpkg-buildpackage failed; $(dirname "$1")/build.log has all of it"
        }
    )
}

# ---- bare roots ----

roots_folder() { echo "${ASSAY_ROOTS:-$PWD/out/roots}"; }

# bare_root SUITE: a minimal Debian in out/roots/SUITE, made once and not changed later.
bare_root() {
    local root
    root=$(roots_folder)/$1
    [ ! -e "$root/.whole" ] || return 0
    need debootstrap
    say "debootstrap $1"
    mkdir -p "$(roots_folder)"
    as_root rm -rf "$root"
    as_root debootstrap --variant=minbase "$1" "$root" \
        "${ASSAY_MIRROR:-http://deb.debian.org/debian}" >"$(roots_folder)/$1.log" 2>&1 ||
        die "debootstrap of $1 failed; $(roots_folder)/$1.log says why"
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

# in_root ROOT COMMAND…: in it, with /proc, /sys and /dev, which are gone when the command ends.
in_root() {
    # shellcheck disable=SC2016
    as_root unshare --mount --propagation private sh -c '
        root=$1
        shift
        mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" &&
            mount --rbind /dev "$root/dev" || exit 1
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
            LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive ASSAY_COMMIT="$ASSAY_COMMIT" \
            SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" chroot "$root" "$@"' sh "$@"
}

apt_in_root() {
    in_root "$1" sh -c 'apt-get update -qq && shift && apt-get install -y -qq --no-install-recommends "$@" >/dev/null' sh "$@"
}

# package_in_root TREE ARCHITECTURE [SUITE]: packages made in a Debian root, for another architecture
# with that one's libraries, into the folder around TREE.
package_in_root() {
    local root suite=${3:-bookworm} folder name
    folder=$(dirname "$1") name=$(basename "$1")
    bare_root "$suite"
    root=$(copy_root "$suite" "$suite-package-$2")
    say "installing what a build for $2 needs in $root"
    as_root mkdir "$root/made"
    as_root cp -a "$1" "$root/made/"
    # shellcheck disable=SC2016
    in_root "$root" sh -e -c '
        dpkg --add-architecture "$1"
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends dpkg-dev fakeroot >/dev/null
        own=$(dpkg --print-architecture)
        [ "$own" = "$1" ] || apt-get install -y -qq --no-install-recommends "crossbuild-essential-$1" >/dev/null
        cd "/made/$2"
        profile=
        [ "$own" = "$1" ] || profile="--build-profiles=cross"
        apt-get build-dep -y -qq --no-install-recommends --host-architecture "$1" ${profile:+-P cross} ./ >/dev/null
        DEB_BUILD_OPTIONS="parallel=$(nproc)" dpkg-buildpackage --build=binary --no-sign --host-arch "$1" $profile >../build.log 2>&1 ||
            { tail -40 ../build.log >&2; exit 1; }
    ' sh "$2" "$name" || die "making packages for $2 in $root failed"
    as_root cp "$root"/made/*.deb "$root"/made/*.changes "$root"/made/build.log "$folder/"
    as_root chown "$(id -u):$(id -g)" "$folder"/*.deb
    as_root rm -rf --one-file-system "$root"
}

# try_package ROOT FOLDER: install, use, upgrade and purge the packages of a folder in a root.
try_package() {
    local root=$1 folder=$2 arch
    arch=$(dpkg --print-architecture)
    as_root mkdir -p "$root/debs/older"
    as_root cp "$folder"/assay_*_"$arch".deb "$folder"/assay-workloads_*_"$arch".deb packaging/smoke "$root/debs/"
    in_root "$root" sh -e /dev/stdin <<'END' || die "the packages do not work in $root"
apt-get update -qq
# The same packages under an older version, to be upgraded.
for deb in /debs/*.deb; do
    dpkg-deb -R "$deb" /debs/unpacked
    version=$(dpkg-deb -f "$deb" Version)
    sed -i "s/$version/0.0.1/" /debs/unpacked/DEBIAN/control
    dpkg-deb -b /debs/unpacked "/debs/older/$(basename "$deb")" >/dev/null
    rm -r /debs/unpacked
done
cd /tmp
apt-get install -y -qq --no-install-recommends /debs/older/*.deb >/dev/null
[ "$(dpkg-query -W -f '${Version}' assay)" = 0.0.1 ]
apt-get install -y -qq --no-install-recommends /debs/*.deb >/dev/null
[ "$(dpkg-query -W -f '${Version}' assay)" != 0.0.1 ]
dpkg --verify assay assay-workloads
chmod 755 /debs /debs/smoke
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

# ./dev roots [--short] [SUITE…]: in a bare Debian 12 and 13 each, what README promises: ./dev demo, the
# unit tests, the package in use, and the static program in use, in a root of nothing but busybox as
# well.  Needs root; a quarter of an hour for each.  --short: only the package and the static program,
# built on this machine, in its own release.
verb_roots() {
    [ "$(id -u)" -eq 0 ] || { say "skipped: ./dev roots needs root for debootstrap and chroot"; return 0; }
    local suite short='' suites
    if [ "${1:-}" = --short ]; then
        short=yes
        shift
    fi
    suites=("$@")
    stamp
    # A package is for the release that it was made in.
    [ ${#suites[@]} -gt 0 ] || [ -z "$short" ] || suites=("$(. /etc/os-release && echo "$VERSION_CODENAME")")
    [ ${#suites[@]} -gt 0 ] || suites=(bookworm trixie)
    [ -z "$short" ] || verb_package "$(dpkg --print-architecture)"
    for suite in "${suites[@]}"; do
        bare_root "$suite"
        if [ -n "$short" ]; then
            roots_try_package "$suite" "out/package/$(dpkg --print-architecture)"
        else
            roots_try_sources "$suite"
        fi
    done
    verb_release "$(uname -m)"
    for suite in "${suites[@]}"; do roots_try_release "$suite"; done
    roots_try_busybox
    [ -n "$short" ] || roots_try_container
}

# The README's commands, and a package made there.
roots_try_sources() {
    local root suite=$1
    root=$(copy_root "$suite" "$suite-demo")
    source_tree "$root/src"
    say "$suite: ./dev demo"
    in_root "$root" sh -c 'cd /src && ./dev demo' || die "./dev demo fails in $suite"
    say "$suite: the unit tests"
    in_root "$root" sh -c 'cd /src && python3 tests/lib/run.py gcc=build:unit' ||
        die "unit tests fail in $suite"
    say "$suite: the package"
    in_root "$root" sh -c 'cd /src && ./dev package' || die "./dev package fails in $suite"
    roots_try_package "$suite" "$root/src/out/package/$(dpkg --print-architecture)"
    rm -rf --one-file-system "$root"
}

# put_release ROOT: unpacks the static program, and prints its path in the root.
put_release() {
    local name
    name=$(release_name "$(uname -m)")
    mkdir -p "$1/opt" "$1/tmp"
    chmod 1777 "$1/tmp"
    tar -xJf "out/release/$name.tar.xz" -C "$1/opt"
    cp packaging/smoke "$1/opt/smoke"
    chmod 755 "$1/opt" "$1/opt/smoke"
    echo "/opt/$name/bin/assay"
}

# A bare Debian: nothing is installed but what was unpacked.
roots_try_release() {
    local root program
    root=$(copy_root "$1" "$1-release")
    program=$(put_release "$root")
    in_root "$root" setpriv --reuid someone --regid someone --clear-groups /opt/smoke "$program" ||
        die "the static program does not work in $1"
    rm -rf --one-file-system "$root"
    say "$1: the static program was used"
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
    rm -rf --one-file-system "$root"
    say "busybox alone: the static program was used"
}

# Containerfile's image, made and used by podman; busybox is this machine's, no registry is asked.
roots_try_container() {
    local words=(run --rm --network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024) runtime reason=
    want podman buildah runc crun
    command -v podman >/dev/null || { say "skipped: the container: podman is not installed"; return 0; }
    need busybox-static
    bare_busybox "$(roots_folder)/image"
    tar -C "$(roots_folder)/image" -c . | podman import - localhost/assay-busybox >/dev/null 2>&1
    rm -rf --one-file-system "$(roots_folder)/image"
    for runtime in crun runc ''; do
        [ -n "$runtime" ] || { say "skipped: podman starts no container here: $reason"; return 0; }
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
    say "a container: the image was built and used"
}

roots_try_package() {
    local root
    root=$(copy_root "$1" "$1-install")
    try_package "$root" "$2"
    rm -rf --one-file-system "$root"
    say "$1: installed, used, upgraded, purged"
}

# ---- the portable archive ----

packages_release=(xz-utils liblzma-dev libbz2-dev clang bpftool)

# ./dev release [ARCHITECTURE]: one static program for any Linux, with its manual pages, completions,
# workloads and experiments, into out/release/.  For another architecture than this machine's it is
# built in a Debian root.  Two builds of a commit have the same bytes: --verify builds a second time,
# in another directory, and compares.
verb_release() {
    local arch again=
    if [ "${1:-}" = --verify ]; then
        again=$(mktemp -d "${TMPDIR:-/tmp}/assay-release-again.XXXXXX")
        shift
    fi
    arch=${1:-$(uname -m)}
    case "$arch" in
    amd64) arch=x86_64 ;;
    arm64) arch=aarch64 ;;
    esac
    stamp
    if [ "$arch" = "$(uname -m)" ]; then
        need_to_build
        ! has_apt || ! can_be_root || need "${packages_release[@]}"
        say "building for $arch"
        source_tree out/release/source
        [ -z "$again" ] || cp -a out/release/source "$again/another-directory-of-a-longer-name"
        release_build out/release/source "$PWD/out/release" "$arch"
        rm -rf out/release/source
    else
        release_in_root "$arch"
    fi
    (cd out/release && sha256sum ./*.tar.xz >SHA256SUMS)
    say "made: out/release/$(release_name "$arch").tar.xz"
    [ -z "$again" ] || verify_release "$arch" "$again"
}

# verify_release ARCHITECTURE FOLDER: the same sources, a copy of which is in FOLDER, are built again,
# at a longer path, with another umask, locale and time zone; the archives must be the same.
verify_release() {
    local name again=$2
    name=$(release_name "$1")
    [ -e "$again/another-directory-of-a-longer-name" ] ||
        die "--verify is for this machine's architecture, $(uname -m)"
    say "building again in $again"
    (
        umask 077
        export LC_ALL=C TZ=Asia/Kathmandu
        release_build "$again/another-directory-of-a-longer-name" "$again" "$1"
    ) || die "the second build failed in $again"
    if ! cmp "out/release/$name.tar.xz" "$again/$name.tar.xz"; then
        diff <(tar -xJOf "out/release/$name.tar.xz" "$name/SHA256SUMS") \
            <(tar -xJOf "$again/$name.tar.xz" "$name/SHA256SUMS") >&2 || true
        die "two builds of one commit differ (the files above, or only their metadata); $again has the second"
    fi
    rm -rf "$again"
    say "both builds have the same bytes: $(sha256sum <"out/release/$name.tar.xz" | cut -c -16)…"
}

release_name() { echo "assay-$(version_here)-$1-linux"; }

# release_build TREE FOLDER ARCHITECTURE [MESON OPTIONS…]: builds in TREE, packs into FOLDER.
# libpq, libmicrohttpd and debuginfod need libraries that have no static form; assay says so.
release_build() {
    local tree=$1 folder=$2 name
    name=$(release_name "$3")
    tree=$(cd "$tree" && pwd)
    shift 3
    (
        cd "$tree" || exit
        export CFLAGS="-ffile-prefix-map=$tree=. ${CFLAGS:-}"
        meson setup build "$@" --prefix=/ -Dbuildtype=debugoptimized -Dtests=false -Dload=false \
            -Dauto_features=enabled -Dprefer_static=true -Db_pie=true -Dc_link_args=-static-pie -Dlibpq=disabled \
            -Dmicrohttpd=disabled -Ddebuginfod=disabled -Dcommit="$ASSAY_COMMIT" >meson.log ||
            { tail -20 meson.log >&2; exit 1; }
        ninja -C build --quiet >ninja.log 2>&1 || { tail -40 ninja.log >&2; exit 1; }
        DESTDIR="$tree/$name" meson install -C build --no-rebuild --quiet --strip
        rm -rf "${name:?}/include"
        find "${name:?}/lib" -mindepth 1 -maxdepth 1 ! -name assay -exec rm -rf {} +
        cp LICENSE CHANGELOG.md README.md "$name/"
        cd "$name" || exit
        find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum >../sums
        mv ../sums SHA256SUMS
        chmod -R u=rwX,go=rX .
        cd ..
        tar -c --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
            --numeric-owner "$name" | xz -T1 -6 >"$folder/$name.tar.xz"
    )
}

# For an architecture that this machine does not have, with that one's libraries.
release_in_root() {
    local arch=$1 debian root
    case "$arch" in
    aarch64) debian=arm64 ;;
    x86_64) debian=amd64 ;;
    *) die "no release for '$arch'; use x86_64 or aarch64" ;;
    esac
    bare_root bookworm
    root=$(copy_root bookworm "bookworm-release-$debian")
    source_tree "$root/src"
    say "building for $arch in $root"
    # shellcheck disable=SC2016
    in_root "$root" bash -e -c '
        cd /src
        dpkg --add-architecture "$1"
        apt-get update -qq
        libraries=()
        for name in libelf-dev libdw-dev libzstd-dev zlib1g-dev libcapstone-dev libncurses-dev \
            libiberty-dev libjansson-dev libsqlite3-dev libyaml-dev liburing-dev libbpf-dev \
            liblzma-dev libbz2-dev; do libraries+=("$name:$1"); done
        apt-get install -y -qq --no-install-recommends "crossbuild-essential-$1" meson ninja-build \
            "pkgconf:$1" python3 scdoc xz-utils "${libraries[@]}" >/dev/null
        /usr/share/meson/debcrossgen --arch "$1" -o /cross >/dev/null 2>&1
        set --  "$1" "$2"
        . packaging/verbs.sh
        mkdir /made
        release_build /src /made "$2" --cross-file /cross' bash "$debian" "$arch" ||
        die "building for $arch in $root failed"
    mkdir -p out/release
    as_root cp "$root"/made/*.tar.xz out/release/
    as_root chown "$(id -u):$(id -g)" out/release/*.tar.xz
    as_root rm -rf --one-file-system "$root"
}
