/** Octal permission modes as modules write them. */

/** 3 or 4 octal digits. A mode is a quoted string: YAML reads a bare 0644 as the decimal number 644. */
export const MODE_PATTERN = '^[0-7]{3,4}$';

/** The permission bits of a mode that matches `MODE_PATTERN`. */
export const parseMode = (mode: string): number => Number.parseInt(mode, 8);

/** Four octal digits, as `stat` shows them. */
export const formatMode = (mode: number): string => mode.toString(8).padStart(4, '0');
