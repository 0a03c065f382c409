# SPDX-License-Identifier: MIT
"""Names and source lines of real binaries, compared with nm, objdump and addr2line."""
import lzma
import re
import shutil

from harness import *

RESOLVE = str(pathlib.Path(os.environ.get("BUILD", ROOT / "build")) / "tests/tools/tool-resolve")
# Neither this user's caches nor any server decide what is found.
ALONE = {"ASSAY_NO_CACHE": "1", "HOME": "/nonexistent", "DEBUGINFOD_URLS": ""}
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"


def run(*args, input=None, env=None, check=True):
    """Output of a command that must succeed."""
    result = subprocess.run([str(word) for word in args], input=input, text=True, errors="replace",
                            capture_output=True, timeout=600, env=dict(os.environ, **(env or {})))
    if (check and result.returncode) or "Sanitizer" in result.stderr or "runtime error:" in result.stderr:
        raise AssertionError(f"{args[0]}: exit {result.returncode}\n{result.stderr[-4000:]}")
    return result


def resolve(path, addresses, *options, cache=None, env=None):
    """The frames [(name, place)] of each address, and the diagnostics."""
    environment = dict(ALONE, **(env or {}))
    if cache:
        environment.update(ASSAY_NO_CACHE="0", XDG_CACHE_HOME=str(cache))
    result = run(RESOLVE, *options, path, env=environment,
                 input="".join(f"{address:x}\n" for address in addresses))
    return frames(result.stdout), result.stderr


def frames(text):
    found = {}
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        if re.fullmatch(r"0x[0-9a-f]+", lines[at]):
            chain = found[int(lines[at], 16)] = []
            at += 1
            continue
        place = re.sub(r" \(discriminator.*", "", lines[at + 1])
        place = re.sub(r":\?$", ":0", place)
        chain.append((lines[at], "??" if place.startswith("??") else os.path.normpath(place)))
        at += 2
    return found


def symbols_of(path, *options):
    """{address: names} of the functions that nm lists; not of labels without a size within them."""
    names, sized, end = {}, set(), 0
    for line in run("nm", "-n", "-S", *options, path).stdout.splitlines():
        match = re.match(r"([0-9a-f]+) ([0-9a-f]+ )?([tTwWi]) (\S+)$", line)
        if not match or match[4] in ("data_start", "__data_start"):  # weak, and no function
            continue
        address, size = int(match[1], 16), int((match[2] or "0").strip(), 16)
        if not size and address < end and address not in sized:
            continue
        if size:
            sized.add(address)
            end = max(end, address + size)
        names.setdefault(address, set()).add(match[4])
    return names


def text_of(path):
    sections = run("readelf", "-SW", path).stdout
    match = re.search(r"\.text\s+PROGBITS\s+([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", sections)
    return int(match[1], 16), int(match[1], 16) + int(match[2], 16)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip(f"{program} is not installed")


def cxx_target():
    if not os.path.exists(target("inlines")):
        skip("there was no C++ compiler when the targets were built")
    return target("inlines")


def check_names(path, names, *options):
    """Each address has one of its names, at its start."""
    result = run(RESOLVE, "-n", "-p", *options, path, env=ALONE,
                 input="".join(f"{address:x}\n" for address in names))
    for (address, expected), line in zip(names.items(), result.stdout.splitlines()):
        words = line.split()
        name = re.sub(r"@(?!plt).*", "", words[0])  # a debug file's table has versions in it
        if not {words[0], name} & expected or int(words[1], 16) != address:
            raise AssertionError(f"{address:#x} is {line}, not one of {expected}")
    return len(names)


@test
def every_exported_function_of_the_c_library():
    need("nm")
    if not os.path.exists(LIBC):
        skip(f"no {LIBC}")
    names = {address: {name.split("@")[0] for name in found}
             for address, found in symbols_of(LIBC, "-D", "--defined-only").items()}
    if check_names(LIBC, names, "-d", "/nowhere") < 1000:
        raise AssertionError("fewer than a thousand functions")


@test
def every_function_of_a_program():
    need("nm")
    for name in ("empty-static", "inlines", "spin", "oxide", "libplugin.so"):
        if os.path.exists(target(name)):
            names = {address: found for address, found in symbols_of(target(name)).items()
                     if not found & {"_end", "_edata", "__bss_start"}}
            check_names(target(name), names)


@test
def entries_of_the_plt_have_names():
    need("objdump")
    listing = run("objdump", "-d", cxx_target()).stdout
    entries = {int(match[1], 16): {match[2]}
               for match in re.finditer(r"^([0-9a-f]+) <([^>+]+@plt)>:", listing, re.MULTILINE)}
    if check_names(cxx_target(), entries) < 5:
        raise AssertionError("fewer than five entries")


def once(place):
    """csu/init-first.c of csu/csu/init-first.c: before version 19, and in binutils, a relative folder of the
    compiler is relative to itself."""
    return re.sub(r"^(.+)/\1/", r"\1/", place)


def compare(path, against, step=3, *options, code=None, program="addr2line"):
    """Lines and depth of the chain at every third byte of the code, beside addr2line's."""
    start, end = text_of(code or path)
    addresses = range(start, end, step)
    mine, _ = resolve(path, addresses, *options)
    words = "".join(f"{address:x}\n" for address in addresses)
    theirs = frames(run(program, "-a", "-f", "-i", "-e", against, input=words).stdout)
    same = inlined = 0
    for address in addresses:
        ours, reference = mine[address], theirs[address]
        # Code without lines: addr2line falls back on the name of a file.
        if ours[0][0] == "??" or reference[0][1] == "??" or reference[0][1].endswith(":0"):
            continue
        places = [place for _, place in ours]
        theirs_once = [place if place in places else once(place) for _, place in reference]
        equal(places, theirs_once, f"{address:#x}")
        # addr2line takes the symbol for an inlined function without a linkage name.
        for (name, _), (other, _) in zip(ours[1:-1], reference[1:-1]):
            if name != other and not name.endswith("::" + other):
                raise AssertionError(f"{address:#x}: {name}, not {other}")
        same += 1
        inlined += len(ours) > 1
    return same, inlined


@test
def lines_and_inlined_functions_of_cxx():
    need("addr2line")
    same, inlined = compare(cxx_target(), cxx_target())
    if same < 1000 or inlined < 500:
        raise AssertionError(f"{same} addresses compared, {inlined} with inlined functions")


@test
def lines_and_inlined_functions_of_rust():
    need("addr2line")
    if not os.path.exists(target("oxide")):
        skip("there was no rustc when the targets were built")
    same, inlined = compare(target("oxide"), target("oxide"), 31)
    if same < 1000 or inlined < 500:
        raise AssertionError(f"{same} addresses compared, {inlined} with inlined functions")


def build_cxx(compiler, *options):
    need(compiler)
    path = os.path.join(os.getcwd(), "program")
    run(compiler, "-O2", "-std=c++17", *options, ROOT / "tests/targets/inlines.cc", "-o", path)
    return path


@test
def lines_and_inlined_functions_of_the_c_library():
    need("llvm-addr2line")
    identity = build_id(LIBC)
    debug = f"/usr/lib/debug/.build-id/{identity[:2]}/{identity[2:]}.debug"
    if not os.path.exists(debug):
        skip("its debug file is not installed (libc6-dbg)")
    same, inlined = compare(LIBC, debug, 61, program="llvm-addr2line")
    if same < 10000 or inlined < 1000:
        raise AssertionError(f"{same} addresses compared, {inlined} with inlined functions")


@test
def a_folder_of_the_compiler_that_is_relative():
    """As in Debian's libc6-dbg: DW_AT_comp_dir is ./csu, and so is folder 0 of the lines."""
    need("gcc")
    pathlib.Path("first.c").write_text("int first(int a)\n{\n    return a * 3;\n}\nint main(void)\n{\n    return first(0);\n}\n")
    for dwarf in "-gdwarf-4", "-gdwarf-5":
        run("gcc", "-O0", "-no-pie", dwarf, f"-fdebug-prefix-map={os.getcwd()}=./csu", "first.c", "-o", "program")
        address = int(re.search(r"^([0-9a-f]+) T first$", run("nm", "program").stdout, re.M)[1], 16)
        found, _ = resolve("program", [address])
        equal(found[address], [("first", "csu/first.c:2")], dwarf)


@test
def older_dwarf():
    need("addr2line")
    for compiler in ("g++", "clang++"):
        path = build_cxx(compiler, "-gdwarf-4")
        same, inlined = compare(path, path, 11)
        if same < 300 or inlined < 100:
            raise AssertionError(f"{compiler}: {same}, {inlined}")


@test
def dwarf_of_clang():
    # Neither binutils 2.40 nor elfutils 0.188 finds inlined functions here (DW_FORM_rnglistx).
    need("llvm-addr2line")
    path = build_cxx("clang++", "-gdwarf-5")
    same, inlined = compare(path, path, 11, program="llvm-addr2line")
    if same < 300 or inlined < 100:
        raise AssertionError(f"{same}, {inlined}")


@test
def split_dwarf():
    need("addr2line")
    whole = build_cxx("g++", "-g", "-fno-omit-frame-pointer")
    os.rename(whole, "whole")
    split = build_cxx("g++", "-g", "-gsplit-dwarf", "-fno-omit-frame-pointer")
    if text_of("whole") != text_of(split):
        skip("this compiler makes other code with -gsplit-dwarf")
    same, inlined = compare(split, "whole", 11)
    if same < 300 or inlined < 100:
        raise AssertionError(f"{same}, {inlined}")
    for version in ("4",):
        split = build_cxx("g++", f"-gdwarf-{version}", "-gsplit-dwarf", "-fno-omit-frame-pointer")
        same, inlined = compare(split, "whole", 11)
        if same < 300 or inlined < 100:
            raise AssertionError(f"DWARF {version}: {same}, {inlined}")


@test
def compressed_sections():
    need("addr2line", "objcopy")
    run("objcopy", "--compress-debug-sections=zlib", cxx_target(), "packed")
    same, inlined = compare(os.path.abspath("packed"), cxx_target(), 11)
    if same < 300 or inlined < 100:
        raise AssertionError(f"{same}, {inlined}")


@test
def sections_compressed_with_zstd():
    need("addr2line", "objcopy")
    if subprocess.run(["objcopy", "--compress-debug-sections=zstd", cxx_target(), "packed"],
                      capture_output=True).returncode:
        skip("this objcopy has no zstd")
    same, inlined = compare(os.path.abspath("packed"), cxx_target(), 11)
    if same < 300 or inlined < 100:
        raise AssertionError(f"{same}, {inlined}")
    # Damaged within the compressed bytes: no lines, and no harm.
    sections = run("readelf", "-SW", "packed").stdout
    at = int(re.search(r"\.debug_info\s+PROGBITS\s+\S+ (\S+)", sections)[1], 16)
    bytes_ = bytearray(open("packed", "rb").read())
    bytes_[at + 200:at + 260] = bytes(60)
    open("packed", "wb").write(bytes_)
    resolve(os.path.abspath("packed"), range(*text_of("packed"), 4096))


@test
def split_dwarf_of_clang():
    """clang's .dwo files have no list of files of their own."""
    need("llvm-addr2line")
    whole = build_cxx("clang++", "-g", "-fno-omit-frame-pointer")
    os.rename(whole, "whole")
    for version in "5", "4":
        split = build_cxx("clang++", f"-gdwarf-{version}", "-gsplit-dwarf",
                          "-fno-omit-frame-pointer")
        if text_of("whole") != text_of(split):
            skip("this compiler makes other code with -gsplit-dwarf")
        same, inlined = compare(split, "whole", 11, program="llvm-addr2line")
        if same < 300 or inlined < 100:
            raise AssertionError(f"DWARF {version}: {same}, {inlined}")


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path).stdout)[1]


def make_split():
    """A stripped program and its debug file."""
    need("objcopy", "strip")
    run("objcopy", "--only-keep-debug", cxx_target(), "program.debug")
    run("strip", "-o", "program", cxx_target())
    return os.path.abspath("program"), os.path.abspath("program.debug")


def main_address():
    return next(address for address, names in symbols_of(cxx_target()).items() if "main" in names)


@test
def a_debug_file_by_its_link():
    need("addr2line")
    program, debug = make_split()
    stripped, _ = resolve(program, [main_address()])
    equal(stripped[main_address()][0][0], f"program+{main_address():#x}")
    run("objcopy", f"--add-gnu-debuglink={debug}", program)
    same, inlined = compare(program, cxx_target(), 11, code=program)
    if same < 300 or inlined < 100:
        raise AssertionError(f"{same}, {inlined}")
    os.mkdir(".debug")
    os.rename(debug, ".debug/program.debug")
    found, _ = resolve(program, [main_address()])
    equal(found[main_address()][-1][0], "main")
    # Another build's debug file under the right name is not used.
    shutil.copy(target("spin"), ".debug/program.debug")
    found, words = resolve(program, [main_address()])
    equal(found[main_address()][0][0], f"program+{main_address():#x}")
    contains(words, "debug file of a different build")


@test
def a_debug_file_by_its_build_id():
    need("addr2line")
    program, debug = make_split()
    identity = build_id(program)
    folder = pathlib.Path("debug/.build-id") / identity[:2]
    folder.mkdir(parents=True)
    os.rename(debug, folder / f"{identity[2:]}.debug")
    folders = f"/nowhere:{os.path.abspath('debug')}"
    same, inlined = compare(program, cxx_target(), 11, "-d", folders, code=program)
    if same < 300 or inlined < 100:
        raise AssertionError(f"{same}, {inlined}")


@test
def a_debug_file_from_debuginfod():
    program, debug = make_split()
    folder = pathlib.Path("server/buildid") / build_id(program)
    folder.mkdir(parents=True)
    os.rename(debug, folder / "debuginfo")
    environment = {"DEBUGINFOD_URLS": f"file://{os.path.abspath('server')}",
                   "DEBUGINFOD_CACHE_PATH": os.path.abspath("client")}
    found, words = resolve(program, [main_address()], env=environment)
    if "Function not implemented" in words or not words:
        skip("built without libdebuginfod, or it is not installed")
    contains(words, "from debuginfod")
    equal(found[main_address()][-1][0], "main")


@test
def small_debug_data_in_the_program():
    need("objcopy", "strip", "nm")
    run("objcopy", "--only-keep-debug", cxx_target(), "full.debug")
    run("objcopy", "-S", "--remove-section=.debug*", "--keep-symbol=main", cxx_target(), "small")
    run("strip", "-o", "program", cxx_target())
    packed = lzma.compress(pathlib.Path("small").read_bytes(), format=lzma.FORMAT_XZ)
    pathlib.Path("packed.xz").write_bytes(packed)
    run("objcopy", "--add-section", ".gnu_debugdata=packed.xz", "program", "with")
    found, _ = resolve(os.path.abspath("with"), [main_address()])
    if found[main_address()][0][0] == "??":
        config = (pathlib.Path(RESOLVE).parents[2] / "config.h").read_text()
        if "HAVE_LIBDW 1" not in config:
            skip("built without libdw")
    equal(found[main_address()][0][0], "main")


@test
def a_stripped_program_has_its_exported_names():
    need("nm", "strip")
    run("strip", "-o", "library.so", target("libplugin.so"))
    exported = symbols_of(target("libplugin.so"), "-D", "--defined-only")
    check_names(os.path.abspath("library.so"), exported)
    inner = next(address for address, names in symbols_of(target("libplugin.so")).items()
                 if any(name.startswith("plugin_inner") for name in names))
    found, _ = resolve(os.path.abspath("library.so"), [inner])
    equal(found[inner], [(f"library+{inner:#x}", "??")])


@test
def another_build_of_the_file_is_not_used():
    program, _ = make_split()
    address = main_address()
    found, words = resolve(cxx_target(), [address], "-b", build_id(cxx_target()))
    equal((found[address][-1][0], words), ("main", ""))
    found, words = resolve(cxx_target(), [address], "-b", "0123456789" * 4)
    equal(found[address], [("??", "??")])
    contains(words, "not the file that was recorded")
    contains(words, "0123456789" * 4)
    found, words = resolve("/nonexistent/program", [address])
    equal(found[address], [("??", "??")])
    contains(words, "/nonexistent/program was not found")


@test
def files_below_another_root():
    shutil.copy(cxx_target(), "copy")
    os.makedirs("root/usr/bin")
    os.rename("copy", "root/usr/bin/thing")
    address = main_address()
    found, _ = resolve("/usr/bin/thing", [address], "-r", os.path.abspath("root"), "-b",
                       build_id(cxx_target()))
    equal(found[address][-1][0], "main")


@test
def a_deleted_file_of_a_living_process():
    shutil.copy(target("spin"), "running")
    path = os.path.abspath("running")
    process = subprocess.Popen([path, "1000000"], stdout=subprocess.DEVNULL)
    try:
        os.unlink(path)
        address = next(address for address, names in symbols_of(target("spin")).items()
                       if "main" in names)
        identity = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", target("spin")).stdout)
        if not identity:
            skip("the target has no build-id")
        found, _ = resolve(path + " (deleted)", [address], "-i", process.pid, "-b", identity[1])
        equal(found[address][-1][0], "main")
    finally:
        process.kill()
        process.wait()


@test
def tables_are_cached_and_survive_the_file():
    address = main_address()
    shutil.copy(cxx_target(), "program")
    program, cache = os.path.abspath("program"), os.path.abspath("cache")
    identity = build_id(program)
    entry = pathlib.Path(cache) / "assay/symbols" / f"{identity}.symtab"
    resolve(program, [address], "-b", identity, cache=cache)
    first = entry.read_bytes()
    for damage in (b"", first[:100], first[:-1], b"x" * len(first), first[:5000] + b"?" + first[5001:]):
        entry.write_bytes(damage)
        found, _ = resolve(program, [address], "-b", identity, cache=cache)
        equal(found[address][-1][0], "main")
        equal(entry.read_bytes(), first)
    os.unlink(program)
    found, _ = resolve(program, [address], "-n", "-b", identity, cache=cache)
    equal(found[address][-1][0], "main")
    # Where the cache cannot be written, all goes on without.
    pathlib.Path("file").write_text("")
    found, _ = resolve(cxx_target(), [address], "-b", identity, cache=os.path.abspath("file"))
    equal(found[address][-1][0], "main")


@test
def names_that_are_no_text():
    need("gcc")
    long = "x" * 100000
    source = [".text"]
    for name in ("CONTROLNAME", "IN", long, "main"):
        source += [f".globl {name}", f".type {name}, @function", f"{name}: nop", "ret",
                   f".size {name}, . - {name}"]
    pathlib.Path("odd.s").write_text("\n".join(source) + "\n")
    run("gcc", "odd.s", "-o", "odd")
    # Assemblers do not write such names; whoever wants to disturb a terminal does.
    data = pathlib.Path("odd").read_bytes()
    data = data.replace(b"\0CONTROLNAME\0", b"\0\x1b[31mred\n\r\x07\0")
    pathlib.Path("odd").write_bytes(data.replace(b"\0IN\0", b"\0\xff\xfe\0"))
    raw = subprocess.run([RESOLVE, "-n", os.path.abspath("odd")], capture_output=True,
                         env=dict(os.environ, **ALONE),
                         input="".join(f"{a:x}\n" for a in range(*text_of("odd"))).encode())
    equal(raw.returncode, 0)
    for part in (b"\x1b[31mred", b"\xff\xfe", b"x" * 65536):
        if part not in raw.stdout:
            raise AssertionError(f"{part[:20]!r} is not there")
    if b"x" * 65537 in raw.stdout:
        raise AssertionError("the long name was not cut")


@test
def damaged_files_do_no_harm():
    data = bytearray(pathlib.Path(cxx_target()).read_bytes())
    address = main_address()
    seed = 12345
    for round in range(40):
        broken = bytearray(data)
        if round % 4 == 0:
            del broken[len(broken) * round // 40:]
        else:
            for _ in range(200):
                seed = (seed * 1103515245 + 12345) & 0x7fffffff
                place = seed % (len(broken) if round % 4 > 1 else 4096)
                broken[place] = (seed >> 8) & 255
            broken[:16] = data[:16]
        pathlib.Path("broken").write_bytes(broken)
        resolve(os.path.abspath("broken"), range(address, address + 2000, 7))


@test
def the_kernel():
    text = pathlib.Path("/proc/kallsyms").read_text(errors="replace")
    names, ends = {}, []
    for line in text.splitlines():
        address, kind, name = line.split()[:3]
        if kind in "tTwW":
            names.setdefault(int(address, 16), set()).add(name)
    if not names or set(names) == {0}:
        found, words = resolve("[kernel]", [0xffffffff81000000], "-n")
        contains(words, "kptr_restrict")
        return
    some = {address: names[address] for address in sorted(names)[::97] if address}
    check_names("[kernel]", some)
    # The same from the table that the first of two runs leaves.
    cache = os.path.abspath("cache")
    first, _ = resolve("[kernel]", some, "-n", cache=cache)
    entries = list(pathlib.Path(cache).rglob("*.symtab"))
    second, _ = resolve("[kernel]", some, "-n", cache=cache)
    equal(second, first)
    if not entries and os.path.exists("/sys/kernel/notes"):
        raise AssertionError("nothing was kept")
    # What is in no table, as a BPF program that came later, is looked for in the living one.
    found, _ = resolve("[kernel]", [0xffffffffffffff00, min(some)], "-n", cache=cache)
    equal(found[min(some)], first[min(some)])


@test
def programs_of_another_machine():
    need("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-objdump")
    run("aarch64-linux-gnu-gcc", "-O2", "-g", ROOT / "tests/targets/loads.c", "-o", "foreign")
    check_names(os.path.abspath("foreign"), {
        address: names for address, names in symbols_of("foreign").items()
        if not any(name.startswith("$") or name in ("_end", "__end__", "_edata", "__bss_start__")
                   for name in names)})
    listing = run("aarch64-linux-gnu-objdump", "-d", "foreign").stdout
    entries = {int(match[1], 16): {match[2]}
               for match in re.finditer(r"^([0-9a-f]+) <([^>+]+@plt)>:", listing, re.MULTILINE)}
    if check_names(os.path.abspath("foreign"), entries) < 3:
        raise AssertionError("fewer than three entries")


main()
