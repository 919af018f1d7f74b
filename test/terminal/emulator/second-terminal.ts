/** A terminal to draw pictures on, and the one that they are of. */
import { Terminal } from '@xterm/headless';
import { mendSkippedCharacter } from '../../../daemon/terminal/emulator/output-limits.js';
import {
  createWidths,
  NO_REFLOW,
  ScreenMaker,
  type VirtualScreen,
} from '../../../daemon/terminal/emulator/virtual-screen.js';
import { type Cell, type Core, coreOf } from '../../../src/terminal/xterm-core.js';
import { looksOfTerminal, type Shown } from './looks.js';

export const LONGEST = 8 * 1024 * 1024;

const maker = new ScreenMaker();

export const newScreen = (cols: number, rows: number): VirtualScreen => maker.make({ cols, rows });

const bytesOf = (output: string | Uint8Array): Uint8Array =>
  typeof output === 'string' ? Buffer.from(output) : output;

/** An operator's terminal: nothing of ours in it but the widths of characters and the skipping of wide ones, and no links. */
export class SecondTerminal {
  private readonly terminal: Terminal;
  private readonly core: Core;

  constructor(cols: number, rows: number) {
    this.terminal = new Terminal({ cols, rows, scrollback: 0, ...NO_REFLOW, allowProposedApi: true, logLevel: 'off' });
    this.core = coreOf(this.terminal);
    const widths = createWidths(this.core.unicodeService._activeProvider);
    this.terminal.unicode.register(widths);
    this.terminal.unicode.activeVersion = 'orch';
    // The library marks links as underlined; our screens do not keep them.
    this.terminal.parser.registerOscHandler(8, () => true);
    // It also forgets to reset these.
    this.terminal.parser.registerEscHandler({ final: 'c' }, () => {
      Object.assign(this.core.options, { cursorBlink: false, convertEol: false });
      this.core.coreService.isCursorHidden = false;
      return false;
    });
    mendSkippedCharacter(this.core, { widthOf: widths.wcwidth, scratch: newCellOf(this.terminal) });
  }

  write(output: string | Uint8Array): this {
    this.core._inputHandler.parse(bytesOf(output));
    return this;
  }

  resize(cols: number, rows: number): void {
    this.terminal.resize(cols, rows);
  }

  onTitle(listener: (title: string) => void): void {
    this.terminal.onTitleChange(listener);
  }

  onAnswer(listener: (answer: string) => void): void {
    this.terminal.onData(listener);
  }

  looks() {
    const { cols, rows } = this.terminal;
    return looksOfTerminal({ core: this.core, cols, rows, newCell: () => newCellOf(this.terminal) });
  }
}

const newCellOf = (terminal: Terminal): Cell => terminal.buffer.active.getNullCell() as unknown as Cell;

/** The picture of a screen of ours. */
export function looksOfScreen(screen: VirtualScreen) {
  const terminal: unknown = Reflect.get(screen, 'terminal');
  if (!(terminal instanceof Terminal)) throw new Error('there is no terminal in it');
  const { cols, rows } = terminal;
  const shown: Shown = { core: coreOf(terminal), cols, rows, newCell: () => newCellOf(terminal) };
  return looksOfTerminal(shown);
}

export const write = (screen: VirtualScreen, output: string | Uint8Array): void => {
  const bytes = bytesOf(output);
  for (let at = 0; at < bytes.length; at += 4096) screen.write(bytes.subarray(at, at + 4096));
};
