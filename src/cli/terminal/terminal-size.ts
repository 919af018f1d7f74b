/** How large the terminal is, and when that changes. */
import type { OutputStream } from '../render/printer.js';

export interface Size {
  readonly cols: number;
  readonly rows: number;
}

/** Windows are dragged: what counts is where they end up. */
const QUIET_MS = 50;
const STANDARD: Size = { cols: 80, rows: 24 };

/** Of the first stream that is a terminal; 80 by 24 without one. */
export function sizeOf(streams: readonly OutputStream[]): Size {
  const terminal = streams.find(({ isTTY }) => isTTY);
  if (!terminal?.columns || !terminal.rows) return STANDARD;
  return { cols: Math.min(terminal.columns, 1_000), rows: Math.min(terminal.rows, 1_000) };
}

/** Calls the listener when the size has changed and stayed for a moment. Gives what ends that. */
export function watchSize(streams: readonly OutputStream[], onSize: (size: Size) => void): () => void {
  const terminal = streams.find(({ isTTY }) => isTTY);
  let timer: NodeJS.Timeout | undefined;
  const changed = () => {
    clearTimeout(timer);
    timer = setTimeout(() => onSize(sizeOf(streams)), QUIET_MS);
  };
  terminal?.on('resize', changed);
  return () => {
    clearTimeout(timer);
    terminal?.off('resize', changed);
  };
}
