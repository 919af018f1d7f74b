/** Signals that a client may send to the foreground process group. Apart from the notes, as the agent needs no schema for them. */
export const TERMINAL_SIGNALS = ['INT', 'TERM', 'HUP', 'QUIT', 'KILL'] as const;

export type TerminalSignal = (typeof TERMINAL_SIGNALS)[number];
