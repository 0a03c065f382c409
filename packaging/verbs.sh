# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The verbs of ./dev that make what others install: package, release.  ./dev reads this file; say, die,
# need, as_root and the lists of packages are its.

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
    copy_sources "$1"
}

# The same into a folder that may have older ones, and what was built of them.
copy_sources() {
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
    else
        need lintian
        package_in_root "$tree" "$arch"
    fi
    say "checking them with lintian"
    lintian --allow-root --fail-on error,warning "out/package/$arch"/*.changes
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

# package_from_build BUILD FOLDER: packages of what a build directory has, into FOLDER, to try them as
# root: nothing is compiled, and their debug information is left out.
package_from_build() {
    local built=$1 tree
    shift
    tree=$1/assay-$(version_here)
    need "${packages_short[@]}"
    rm -rf "$1"
    source_tree "$tree"
    python3 debian/make-changelog "$(version_here)" "$(epoch_here)" >"$tree/debian/changelog"
    ASSAY_BUILT=$built DEB_BUILD_OPTIONS=noautodbgsym \
        make -C "$tree" -f debian/rules binary >"$1/build.log" 2>&1 || {
        tail -40 "$1/build.log" >&2
        die "packing $built failed; $1/build.log has all of it"
    }
    rm -rf "$tree"
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
    as_root cp "$root"/made/*.deb "$root"/made/*.changes "$root"/made/*.buildinfo "$root"/made/build.log "$folder/"
    as_root chown "$(id -u):$(id -g)" "$folder"/*.*
    drop_root "$root"
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
    drop_root "$root"
}
