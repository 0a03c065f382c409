/* SPDX-License-Identifier: MIT */
/* Words and quotes of command lines, and when a shell is needed. */
#include "run/command.h"
#include "base/memory.h"
#include "base/strings.h"
#include "test.h"

/* The words joined by |, "shell" where one is needed, or "error". */
static const char *split(const char *text)
{
    static char joined[512];
    char **words;
    bool needs_shell;
    if (command_split(text, &words, &needs_shell, NULL) < 0)
        return "error";
    joined[0] = '\0';
    for (size_t i = 0; words[i]; i++) {
        strcat(joined, i ? "|" : "");
        strcat(joined, words[i]);
    }
    command_free_words(words);
    return needs_shell ? "shell" : joined;
}

TEST(words_are_split_at_blanks)
{
    CHECK_STR(split("ls"), "ls");
    CHECK_STR(split("  ls\t -l   /usr "), "ls|-l|/usr");
    CHECK_STR(split("a b=c"), "a|b=c");
}

TEST(quotes_and_backslashes_keep_what_they_should)
{
    CHECK_STR(split("echo 'a b' \"c d\" e\\ f"), "echo|a b|c d|e f");
    CHECK_STR(split("echo 'a'\"b\"c"), "echo|abc");
    CHECK_STR(split("echo '' \"\" x"), "echo|||x");
    CHECK_STR(split("echo '$HOME' '*' '|'"), "echo|$HOME|*||");
    CHECK_STR(split("echo \"a\\\"b\\\\c\\d\\$e\""), "echo|a\"b\\c\\d$e");
    CHECK_STR(split("echo \\$x \\| \\*"), "echo|$x|||*");
    CHECK_STR(split("awk '{print $1}' f"), "awk|{print $1}|f");
    CHECK_STR(split("find -name {} x#y a~b"), "find|-name|{}|x#y|a~b");
}

TEST(open_quotes_and_nothing_at_all_are_errors)
{
    CHECK_STR(split("echo 'a"), "error");
    CHECK_STR(split("echo \"a"), "error");
    CHECK_STR(split("echo \"a\\"), "error");
    CHECK_STR(split("echo a\\"), "error");
    CHECK_STR(split(""), "error");
    CHECK_STR(split("  \t"), "error");
}

TEST(what_only_a_shell_can_do_is_noticed)
{
    static const char *const texts[] = {
        "a | b",    "a && b", "a; b",      "a > f", "a < f", "a & ",   "(a)",   "a $x", "a `b`",
        "a \"$x\"", "a *.c",  "a ?",       "a [x]", "a ~",   "a #x",   "X=1 a", "cd x", "exit 1",
        "{ a; }",   "! a",    "ulimit -n", "a\nb",  ": x",   "time a", "if a"};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        if (strcmp(split(texts[i]), "shell") != 0)
            test_fail(__FILE__, __LINE__, "'%s' gives %s", texts[i], split(texts[i]));
}

TEST(a_command_is_looked_up_once)
{
    struct command c;
    struct error err = {0};
    CHECK_INT(command_init(&c, "true 1 2", NULL, &err), 0);
    CHECK(!c.through_shell);
    CHECK(c.program && c.program[0] == '/');
    CHECK_STR(c.argv[2], "2");
    command_done(&c);
    CHECK(command_init(&c, "no-such-command-here", NULL, &err) < 0);
    CHECK_CONTAINS(err.message, "no such command");
}

TEST(a_shell_gets_the_text_as_it_is)
{
    struct command c;
    struct error err = {0};
    CHECK_INT(command_init(&c, "echo 'a' | cat", "sh -e", &err), 0);
    CHECK(c.through_shell);
    CHECK_STR(c.argv[0], "sh");
    CHECK_STR(c.argv[1], "-e");
    CHECK_STR(c.argv[2], "-c");
    CHECK_STR(c.argv[3], "echo 'a' | cat");
    CHECK(!c.argv[4]);
    command_done(&c);
    CHECK(command_init(&c, "a | b", NULL, &err) < 0);
    CHECK_CONTAINS(err.message, "needs a shell");
    CHECK(command_init(&c, " ", "sh", &err) < 0);
}
