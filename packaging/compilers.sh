# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# ./dev compilers and ./dev without: builds with other compilers, and with fewer libraries.  ./dev reads
# this file.

# Debian 12 has gcc 11 and 12 and clang 13 to 16 and 19; Debian 13 has gcc 12 to 14 and clang 17 to 19.
# musl-gcc stands for distributions with another C library (Alpine): see compile_with_musl.
compilers_known=(gcc-12 gcc-13 gcc-14 gcc-15 clang-14 clang-15 clang-16 clang-17 clang-18 clang-19 musl-gcc)

# ./dev compilers [COMPILER…]: everything is compiled with each of them, also the tests; a warning is an
# error.  Without names: every gcc from 12 to 15 and clang from 14 to 19 that this release has.  They are
# installed where that is permitted.  For those of Debian 13: ./dev roots --in trixie ./dev compilers
verb_compilers() {
    local compiler wanted=("$@") compilers=() failed=() good=() begun
    need_to_build
    [ ${#wanted[@]} -gt 0 ] || wanted=("${compilers_known[@]}")
    for compiler in "${wanted[@]}"; do
        if has_apt && can_be_root && ! command -v "$compiler" >/dev/null &&
            apt-cache policy "${compiler/musl-gcc/musl-tools}" 2>/dev/null | grep -q 'Candidate: [^(]'; then
            want "${compiler/musl-gcc/musl-tools}"
        fi
        if command -v "$compiler" >/dev/null; then
            compilers+=("$compiler")
        elif [ $# -gt 0 ]; then
            failed+=("$compiler: not installed, and apt does not have it")
        fi
    done
    [ ${#compilers[@]} -gt 0 ] || die "none of ${wanted[*]} is installed"
    for compiler in "${compilers[@]}"; do
        begun=$SECONDS
        say "compiling with $compiler"
        if compile_with "$compiler"; then
            good+=("$compiler: no warning ($((SECONDS - begun)) s)")
        else
            failed+=("$compiler: $(grep -c 'error:' "out/compilers/$compiler.log" || true) warnings or errors; out/compilers/$compiler.log has them")
        fi
    done
    printf '%s\n' ${good[@]+"${good[@]}"} ${failed[@]+"${failed[@]}"}
    [ ${#failed[@]} -eq 0 ]
}

# The directory is removed: ten of them take gigabytes.  Debug information takes half the time and warns of
# nothing; clang finds what it warns of before it optimises, gcc meanwhile.
compile_with() {
    local folder=out/compilers/build-$1 code=0 options=(-Ddebug=false)
    [[ $1 != clang* ]] || options+=(-Doptimization=0)
    rm -rf "$folder"
    mkdir -p out/compilers
    if [ "$1" = musl-gcc ]; then
        compile_with_musl "$folder" >"out/compilers/$1.log" 2>&1 || code=$?
        rm -rf "$folder"
        return "$code"
    fi
    {
        CC=$1 meson setup "$folder" -Dwerror=true "${options[@]}" && ninja -C "$folder" -k 0
    } >"out/compilers/$1.log" 2>&1 || code=$?
    rm -rf "$folder"
    return "$code"
}

# Debian has no other library built for musl, so everything optional is left out, and the kernel's headers
# are its own.  musl declares some calls with int where Linux has long: its warnings are no errors.
compile_with_musl() {
    local headers=$PWD/out/compilers/kernel-headers name
    mkdir -p "$headers"
    for name in linux asm asm-generic; do
        ln -sfn "$(dirname "$(echo "#include <$name/errno.h>" | cc -E - | sed -n 's/.*"\(.*\/errno\.h\)".*/\1/p' | head -1)")" "$headers/$name"
    done
    CC=musl-gcc meson setup "$1" --auto-features=disabled -Dtests=false -Dc_args="-isystem $headers" &&
        ninja -C "$1" -k 0 && "$1/src/cmd/assay" ab -r 3 true 'sleep 0.01'
}

# ./dev without [LIBRARY…]: a build without each optional library, and one without all of them: it must
# say what it cannot do, and do the rest.
verb_without() {
    build
    python3 tests/lib/without.py "$@"
}
