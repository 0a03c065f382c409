# SPDX-License-Identifier: MIT
"""The real programs that bench/exact runs, and the files that they read."""
import pathlib
import shutil
import subprocess

THREADS = r"""
#include <cstdio>
#include <numeric>
#include <thread>
#include <vector>
int main()
{
    std::vector<std::thread> threads;
    long sums[4] = {};
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&sums, i] {
            std::vector<long> v(20000);
            std::iota(v.begin(), v.end(), i);
            for (int k = 0; k < 20; k++)
                sums[i] += std::accumulate(v.begin(), v.end(), 0L);
        });
    for (auto &thread : threads)
        thread.join();
    std::printf("%ld\n", sums[0] + sums[3]);
}
"""
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or "python3"
FOUR = {"gzip": ["gzip", "-c", "numbers.txt"], "sqlite3": ["sqlite3", ":memory:", ".read insert.sql"],
        "python3": [PYTHON, "-c", "print(sum(i * i for i in range(50000)))"], "threads": ["./threads"]}
TEN = {"gzip": ["gzip", "-c", "few.txt"], "sqlite3": ["sqlite3", ":memory:", "select sum(value * value) from "
                                                      "generate_series(1, 20000)"],
       "python3": [PYTHON, "-c", "print(sum(range(9999)))"], "threads": ["./threads"],
       "sort": ["sort", "few.txt"], "grep": ["grep", "-c", "99", "few.txt"], "awk": ["awk", "{s += $2} END {print s}",
                                                                                  "few.txt"],
       "perl": ["perl", "-ne", "$n{$_}++; END {print scalar %n}", "few.txt"], "tar": ["tar", "cf", "-", "few.txt"],
       "shell": ["sh", "-c", "for f in 1 2 3; do sha256sum few.txt; done | uniq -c"]}


def make_files():
    """In the current directory."""
    pathlib.Path("numbers.txt").write_text("".join(f"{i}\n" for i in range(60000)))
    pathlib.Path("few.txt").write_text("".join(f"line {i * 7919 % 5000}\n" for i in range(5000)))
    pathlib.Path("insert.sql").write_text("create table t(a, b);\nbegin;\n" + "".join(
        f"insert into t values({i}, {i * i});\n" for i in range(10000)) + "commit;\nselect count(*) from t;\n")
    pathlib.Path("threads.cc").write_text(THREADS)
    subprocess.run(["g++", "-O2", "-pthread", "threads.cc", "-o", "threads"], check=True)


def there(commands):
    for name, command in commands.items():
        if shutil.which(command[0]):
            yield name, command
        else:
            print(f"{name:8} is not installed")
