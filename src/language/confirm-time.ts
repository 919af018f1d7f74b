/** The `confirm` of a module: the time in which a machine has to come back after an apply. */

/** From 10s to 1h: 10 to 3600 seconds, 1 to 60 minutes, or one hour. */
export const CONFIRM_PATTERN =
  '^(?:(?:[1-9][0-9]{1,2}|[12][0-9]{3}|3[0-5][0-9]{2}|3600)s|(?:[1-9]|[1-5][0-9]|60)m|1h)$';

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };

/** Returns the seconds of a text that the pattern accepts. */
export const confirmSecs = (text: string): number => Number(text.slice(0, -1)) * (SECONDS[text.slice(-1)] ?? 1);
