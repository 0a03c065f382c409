/* SPDX-License-Identifier: MIT */
/* The texts of /proc and /sys, as machines of several kinds have them, and damaged ones. */
#include "machine/parse.h"
#include "test.h"

static const char cpuinfo[] = "processor\t: 0\n"
                              "vendor_id\t: AuthenticAMD\n"
                              "model\t\t: 17\n"
                              "model name\t: AMD EPYC 9R14 96-Core Processor\n"
                              "cpu MHz\t\t: 2596.144\n"
                              "flags\t\t: fpu vme\n"
                              "power management:\n";

TEST(a_field_is_found_by_its_whole_key)
{
    char value[64];
    CHECK(proc_field(cpuinfo, "model", value, sizeof(value)));
    CHECK_STR(value, "17");
    CHECK(proc_field(cpuinfo, "model name", value, sizeof(value)));
    CHECK_STR(value, "AMD EPYC 9R14 96-Core Processor");
    CHECK(proc_field(cpuinfo, "power management", value, sizeof(value)));
    CHECK_STR(value, "");
    CHECK(!proc_field(cpuinfo, "mode", value, sizeof(value)));
    CHECK(!proc_field(cpuinfo, "vendor", value, sizeof(value)));
    CHECK(!proc_field("", "model", value, sizeof(value)));
    CHECK(!proc_field("model", "model", value, sizeof(value)));
}

TEST(a_field_is_cut_to_the_buffer)
{
    char value[8];
    CHECK(proc_field(cpuinfo, "vendor_id", value, sizeof(value)));
    CHECK_STR(value, "Authent");
}

TEST(os_release_quotes_are_taken_off)
{
    char value[64];
    const char *text = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nEMPTY=\"\"\n"
                       "HALF=\"open\nID_LIKE='a b'";
    CHECK(proc_field(text, "PRETTY_NAME", value, sizeof(value)));
    CHECK_STR(value, "Debian GNU/Linux 12 (bookworm)");
    CHECK(proc_field(text, "ID", value, sizeof(value)));
    CHECK_STR(value, "debian");
    CHECK(proc_field(text, "EMPTY", value, sizeof(value)));
    CHECK_STR(value, "");
    CHECK(proc_field(text, "HALF", value, sizeof(value)));
    CHECK_STR(value, "\"open");
    CHECK(proc_field(text, "ID_LIKE", value, sizeof(value)));
    CHECK_STR(value, "a b");
}

TEST(numbers_in_fields)
{
    uint64_t value = 7;
    CHECK(proc_field_u64("MemTotal:       24684100 kB\n", "MemTotal", &value));
    CHECK_INT(value, 24684100);
    CHECK(!proc_field_u64("MemTotal: none\n", "MemTotal", &value));
    CHECK(!proc_field_u64("MemTotal: -1\n", "MemTotal", &value));
    CHECK(!proc_field_u64("MemTotal:", "MemTotal", &value));
    CHECK_INT(value, 24684100);
    CHECK(proc_field_hex("CapEff:\t000001fffeffffff\n", "CapEff", &value));
    CHECK(value == 0x1fffeffffffu);
    CHECK(!proc_field_hex("CapEff:\tzz\n", "CapEff", &value));
}

TEST(the_chosen_word)
{
    char word[16];
    CHECK(proc_chosen("always [madvise] never\n", word, sizeof(word)));
    CHECK_STR(word, "madvise");
    CHECK(proc_chosen("[none] integrity confidentiality", word, sizeof(word)));
    CHECK_STR(word, "none");
    CHECK(!proc_chosen("always madvise never", word, sizeof(word)));
    CHECK(!proc_chosen("always [madvise", word, sizeof(word)));
    CHECK(!proc_chosen("[]", word, sizeof(word)));
    CHECK(!proc_chosen("] [", word, sizeof(word)));
    CHECK(!proc_chosen("", word, sizeof(word)));
    char small[4];
    CHECK(proc_chosen("[performance]", small, sizeof(small)));
    CHECK_STR(small, "per");
}

TEST(times_of_proc_stat)
{
    struct proc_times t;
    CHECK(proc_stat_times("cpu  5897 1 3316 226180 913 2 30 12 0 0\ncpu0 1 2 3 4\n", &t));
    CHECK_INT(t.user, 5897);
    CHECK_INT(t.idle, 226180);
    CHECK_INT(t.steal, 12);
    CHECK(proc_stat_times("cpu 1 2 3 4\n", &t));
    CHECK_INT(t.steal, 0);
    CHECK(!proc_stat_times("cpu 1 2 3\n", &t));
    CHECK(!proc_stat_times("cpu0 1 2 3 4 5 6 7 8\n", &t));
    CHECK(!proc_stat_times("cpu  one two\n", &t));
    CHECK(!proc_stat_times("", &t));
}

TEST(pressure_lines)
{
    const char *text = "some avg10=4.80 avg60=1.47 avg300=0.71 total=7399022\n"
                       "full avg10=0.50 avg60=0.00 avg300=0.00 total=3\n";
    struct proc_pressure p;
    CHECK(proc_pressure_line(text, "some", &p));
    CHECK_NEAR(p.avg10, 4.8, 1e-9);
    CHECK_INT(p.total_us, 7399022);
    CHECK(proc_pressure_line(text, "full", &p));
    CHECK_NEAR(p.avg10, 0.5, 1e-9);
    CHECK(!proc_pressure_line("some avg10=4.80 avg60=1.47\n", "some", &p));
    CHECK(!proc_pressure_line("something avg10=1", "some", &p));
    CHECK(!proc_pressure_line("", "some", &p));
}

TEST(control_group_lines)
{
    struct proc_cgroup g;
    CHECK(proc_cgroup_line("4:cpu,cpuacct:/a/b\n5:x:/", &g));
    CHECK_INT(g.controllers_length, 11);
    CHECK(strncmp(g.controllers, "cpu,cpuacct", 11) == 0);
    CHECK_INT(g.path_length, 4);
    CHECK(strncmp(g.path, "/a/b", 4) == 0);
    CHECK(proc_cgroup_line("0::/user.slice/a:b", &g));
    CHECK_INT(g.controllers_length, 0);
    CHECK_INT(g.path_length, strlen("/user.slice/a:b"));
    CHECK(proc_cgroup_line("1:name=systemd:/", &g));
    CHECK_INT(g.path_length, 1);
    CHECK(!proc_cgroup_line("", &g));
    CHECK(!proc_cgroup_line(":cpu:/", &g));
    CHECK(!proc_cgroup_line("x:cpu:/", &g));
    CHECK(!proc_cgroup_line("4:cpu\n5:memory:/", &g));
    CHECK(!proc_cgroup_line("4:cpu:relative", &g));
}

TEST(lines_of_maps)
{
    struct proc_mapping m;
    CHECK(
        proc_maps_line("7f0a00001000-7f0a00003000 r-xp 00026000 fe:00 1234    /lib/a b.so\n", &m));
    CHECK(m.start == 0x7f0a00001000 && m.end == 0x7f0a00003000 && m.file_offset == 0x26000);
    CHECK(m.is_executable);
    CHECK_INT(m.path_length, strlen("/lib/a b.so"));
    CHECK(proc_maps_line("1000-2000 rw-p 00000000 00:00 0 \n", &m));
    CHECK(!m.is_executable);
    CHECK_INT(m.path_length, 0);
    CHECK(proc_maps_line("1000-2000 rw-p 00000000 00:00 0", &m));
    CHECK_INT(m.path_length, 0);
    CHECK(!proc_maps_line("", &m));
    CHECK(!proc_maps_line("1000", &m));
    CHECK(!proc_maps_line("2000-1000 r-xp 0 00:00 0", &m));
    CHECK(!proc_maps_line("1000-2000 rwx 0 00:00 0", &m));
    CHECK(!proc_maps_line("1000-2000", &m));
    CHECK(!proc_maps_line("Size: 4 kB", &m));
}

TEST(sizes_of_caches)
{
    uint64_t bytes;
    CHECK(proc_cache_size("32K", &bytes));
    CHECK_INT(bytes, 32768);
    CHECK(proc_cache_size("1024 KB", &bytes));
    CHECK_INT(bytes, 1048576);
    CHECK(proc_cache_size("32M", &bytes));
    CHECK_INT(bytes, 32 << 20);
    CHECK(proc_cache_size("512", &bytes));
    CHECK_INT(bytes, 512);
    CHECK(!proc_cache_size("", &bytes));
    CHECK(!proc_cache_size("K", &bytes));
    CHECK(!proc_cache_size("18446744073709551615K", &bytes));
}

TEST(lines_one_after_another)
{
    const char *text = "a\n\nb\n";
    const char *line = proc_next_line(text);
    CHECK(line == text + 2);
    line = proc_next_line(line);
    CHECK(line == text + 3);
    CHECK(proc_next_line(line) == NULL);
    CHECK(proc_next_line("") == NULL);
}
