/* SPDX-License-Identifier: MIT */
/* Does nothing: what a measurement costs by itself. */
int main(void)
{
    return 0;
}
