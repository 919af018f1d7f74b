/**
 * The shell of terminals in tests that run as whoever starts the tests, and in his home.
 *
 * Bash would read his `.bash_profile`: what is in it may wait for locks of other programs, and leaves them behind when
 * a test kills its shell. A plain shell reads `.profile` alone.
 */
export const TEST_SHELL = '/bin/sh';
