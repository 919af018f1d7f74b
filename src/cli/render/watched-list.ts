/** Shows a watched list: redrawn on a terminal; elsewhere each new or changed record is printed again. */
import type { Outcome } from '../outcome.js';
import type { OutputStream } from './streams.js';

interface WatchedListOptions {
  readonly stdout: OutputStream;
  /** Renders a list as lines: the titles of its columns, then one line for each record. */
  readonly render: (outcome: Outcome) => Promise<readonly string[]>;
  /** Renders a record for programs as one text; null for people. */
  readonly renderRecord: ((record: unknown) => Promise<string>) | null;
  /** True if only names are printed. */
  readonly namesOnly: boolean;
}

const CLEAR_SCREEN = '\u001b[2J\u001b[H';
const upAndErase = (lines: number): string => (lines === 0 ? '' : `\u001b[${lines}A\r\u001b[J`);

export class WatchedList {
  private readonly options: WatchedListOptions;
  private known: ReadonlySet<string> = new Set();
  private hasTitles = false;
  /** Lines on the terminal, and its width when they were drawn. */
  private drawn = 0;
  private columns: number | undefined;

  constructor(options: WatchedListOptions) {
    this.options = options;
  }

  /** Returns what to write for the present state of the list. */
  async next(outcome: Outcome): Promise<string> {
    const records = outcome.records ?? [];
    const keys = records.map((record) => JSON.stringify(record));
    const before = this.known;
    this.known = new Set(keys);
    const isFresh = (_: unknown, index: number) => !before.has(keys[index] ?? '');
    const { renderRecord, namesOnly, render, stdout } = this.options;
    if (renderRecord !== null) return (await Promise.all(records.filter(isFresh).map(renderRecord))).join('');
    if (namesOnly) return asLines(await render({ names: (outcome.names ?? []).filter(isFresh) }));
    const lines = await render(outcome);
    if (stdout.isTTY === true) return this.redraw(lines);
    if (records.length === 0) return this.hasTitles || before.size > 0 ? '' : asLines(lines);
    const titles = this.hasTitles ? [] : lines.slice(0, 1);
    this.hasTitles = true;
    return asLines([...titles, ...lines.slice(1).filter(isFresh)]);
  }

  /** Draws over the earlier lines. Lines that do not fit are counted, because a terminal cannot erase what scrolled away. */
  private redraw(lines: readonly string[]): string {
    const { columns, rows = 24 } = this.options.stdout;
    // The terminal has wrapped the lines of another width anew, so their number is unknown.
    const erase = this.columns === undefined || this.columns === columns ? upAndErase(this.drawn) : CLEAR_SCREEN;
    const room = Math.max(2, rows - 1);
    const shown =
      lines.length <= room ? lines : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more do not fit`];
    this.columns = columns;
    this.drawn = shown.length;
    return erase + asLines(shown);
  }
}

const asLines = (all: readonly string[]): string => all.map((line) => `${line}\n`).join('');
