/**
 * The only file that touches private parts of @xterm/headless: saved cursors, margins, character sets, modes, and the synchronous
 * parser. They belong to one version, and a test compares it with the installed one.
 */
import type { Terminal } from '@xterm/headless';

/** Version of @xterm/headless that this file fits. */
export const XTERM_VERSION = '6.0.0';

/** Style of a cell, or of the next character. Flags are zero when they are off. */
export interface Attributes {
  readonly fg: number;
  readonly bg: number;
  isBold(): number;
  isDim(): number;
  isItalic(): number;
  isUnderline(): number;
  isBlink(): number;
  isInverse(): number;
  isInvisible(): number;
  isStrikethrough(): number;
  isOverline(): number;
  getFgColorMode(): number;
  getFgColor(): number;
  getBgColorMode(): number;
  getBgColor(): number;
  /** 0 none, 1 single, 2 double, 3 curly, 4 dotted, 5 dashed. */
  getUnderlineStyle(): number;
  /** Colour and its mode in one number, as xterm packs them; zero for the colour of the text. */
  readonly extended: { readonly underlineStyle: number; readonly underlineColor: number };
}

export interface Cell extends Attributes {
  /** 2 for a wide character, 0 for the cell after it. */
  getWidth(): number;
  /** Characters of the cell; empty when it is unwritten or erased. */
  getChars(): string;
}

interface Line {
  readonly isWrapped: boolean;
  readonly length: number;
  loadCell(x: number, into: Cell): Cell;
  getWidth(x: number): number;
  setCellFromCodepoint(x: number, codepoint: number, width: number, look: Attributes): void;
  resize(cols: number, fill: Cell): void;
}

interface Lines {
  readonly length: number;
  maxLength: number;
  get(row: number): Line | undefined;
}

/** One of the two screens. Rows and columns start at zero. */
export interface ScreenBuffer {
  readonly lines: Lines;
  /** Number of lines before the visible ones. */
  readonly ybase: number;
  /** Column of the cursor; equals the number of columns while the next character wraps. */
  readonly x: number;
  readonly y: number;
  readonly scrollTop: number;
  readonly scrollBottom: number;
  readonly savedX: number;
  readonly savedY: number;
  readonly savedCurAttrData: Attributes;
  readonly savedCharset: object | undefined;
  readonly tabs: Readonly<Record<number, boolean | undefined>>;
}

export interface FunctionId {
  readonly prefix?: string;
  readonly intermediates?: string;
  readonly final: string;
}

/** The parser. A handler that returns false passes the sequence on to the earlier handler. */
export interface Parser {
  /** State of the parser; zero between sequences. */
  readonly currentState: number;
  /** Zero when no character exists that a combining character could join. */
  precedingJoinState: number;
  registerCsiHandler(id: FunctionId, handler: (params: { readonly params: Int32Array }) => boolean): void;
  registerEscHandler(id: FunctionId, handler: () => boolean): void;
  registerOscHandler(
    ident: number,
    handler: {
      start(): void;
      put(data: Uint32Array, start: number, end: number): void;
      end(isComplete: boolean): boolean;
    },
  ): void;
  clearOscHandler(ident: number): void;
  clearDcsHandler(id: FunctionId): void;
  setPrintHandler(handler: (data: Uint32Array, start: number, end: number) => void): void;
}

export interface WidthProvider {
  readonly version: string;
  wcwidth(codepoint: number): 0 | 1 | 2;
  charProperties(codepoint: number, preceding: number): number;
}

export interface Core {
  readonly buffers: { readonly normal: ScreenBuffer; readonly alt: ScreenBuffer; readonly active: ScreenBuffer };
  readonly coreService: {
    isCursorHidden: boolean;
    readonly modes: { readonly insertMode: boolean };
    readonly decPrivateModes: {
      readonly applicationCursorKeys: boolean;
      readonly applicationKeypad: boolean;
      readonly bracketedPasteMode: boolean;
      readonly cursorBlink: boolean | undefined;
      readonly cursorStyle: 'block' | 'underline' | 'bar' | undefined;
      readonly origin: boolean;
      readonly reverseWraparound: boolean;
      readonly sendFocus: boolean;
      readonly wraparound: boolean;
    };
  };
  readonly coreMouseService: { readonly activeProtocol: string; readonly activeEncoding: string };
  readonly options: { cursorBlink: boolean; convertEol: boolean };
  readonly unicodeService: { readonly _activeProvider: WidthProvider };
  readonly _charsetService: {
    readonly glevel: number;
    readonly charset: object | undefined;
    readonly _charsets: readonly (object | undefined)[];
  };
  readonly _inputHandler: {
    readonly _curAttrData: Attributes;
    readonly _parser: Parser;
    parse(bytes: Uint8Array): unknown;
    print(data: Uint32Array, start: number, end: number): void;
  };
}

/** Returns the private core of a terminal. Throws Error when the library has another version. */
export function coreOf(terminal: Terminal): Core {
  const core = Reflect.get(terminal, '_core') as Partial<Core> | undefined;
  const parts = [core?.buffers, core?.coreService, core?.coreMouseService, core?._charsetService];
  const input = core?._inputHandler;
  if (parts.some((part) => part === undefined) || input?._curAttrData === undefined || input._parser === undefined) {
    throw new Error(`the terminal emulator is not @xterm/headless ${XTERM_VERSION}`);
  }
  return core as Core;
}
