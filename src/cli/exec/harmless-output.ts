/** Filters the output of a remote program for the operator's terminal: text, newlines and colours stay. */
import { sanitize } from '../render/terminal-text.js';

interface HarmlessOptions {
  /** True to keep colours and styles. */
  readonly color: boolean;
  /** True if lines get a prefix that must not be overwritten: a carriage return then ends the line. */
  readonly lines: boolean;
}

const ESCAPE = '\u001b';
const RESET = '\u001b[0m';
/** Longest style sequence; longer ones are removed. */
const LONGEST_STYLE = 64;
/** Longest control string, such as a title; after that the rest is text again. */
const LONGEST_STRING = 4_096;
const STYLE = /^[0-9;:]*$/;

type State = 'text' | 'escape' | 'intermediate' | 'control' | 'string' | 'string-escape';

/** Filter of one stream. Chunks may split sequences and characters. */
export class HarmlessOutput {
  private readonly options: HarmlessOptions;
  private readonly decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  private state: State = 'text';
  private parameters = '';
  private length = 0;
  private isStyled = false;
  private afterReturn = false;

  constructor(options: HarmlessOptions) {
    this.options = options;
  }

  push(bytes: Uint8Array): string {
    return this.filter(this.decoder.decode(bytes, { stream: true }));
  }

  /** Returns the rest, and resets styles. */
  end(): string {
    const rest = this.filter(this.decoder.decode());
    return this.isStyled ? rest + RESET : rest;
  }

  private filter(text: string): string {
    let harmless = '';
    let at = 0;
    while (at < text.length) {
      if (this.state === 'text') {
        const next = text.indexOf(ESCAPE, at);
        const until = next < 0 ? text.length : next;
        harmless += this.plain(text.slice(at, until));
        at = until;
        if (next < 0) continue;
        this.enter('escape');
        at += 1;
        continue;
      }
      const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
      harmless += this.step(character);
      at += character.length;
    }
    return harmless;
  }

  private enter(state: State): string {
    this.state = state;
    this.parameters = '';
    this.length = 0;
    return '';
  }

  /** Handles one character of a sequence. */
  private step(character: string): string {
    if (this.state === 'string' || this.state === 'string-escape') return this.stepString(character);
    if (character === ESCAPE) return this.enter('escape');
    // A character that aborts a sequence is text.
    if (character < ' ' || character > '~') {
      this.enter('text');
      return this.plain(character);
    }
    if (this.state === 'control') return this.stepControl(character);
    if (character <= '/') return this.enter('intermediate');
    if (this.state === 'intermediate') return this.enter('text');
    if (character === '[') return this.enter('control');
    return this.enter(']PX^_'.includes(character) ? 'string' : 'text');
  }

  private stepControl(character: string): string {
    if (character < '@') {
      this.length += 1;
      if (this.length <= LONGEST_STYLE) this.parameters += character;
      return '';
    }
    const { parameters, length } = this;
    this.enter('text');
    const isStyle = character === 'm' && length <= LONGEST_STYLE && STYLE.test(parameters);
    if (!isStyle || !this.options.color) return '';
    this.isStyled = true;
    return `${ESCAPE}[${parameters}m`;
  }

  private stepString(character: string): string {
    if (this.state === 'string-escape' && character !== '\\') {
      this.enter('escape');
      return this.step(character);
    }
    this.length += 1;
    if (this.state === 'string' && character === ESCAPE) this.state = 'string-escape';
    else if (this.state === 'string-escape' || '\u0007\u009c'.includes(character)) this.enter('text');
    else if (character === '\n' || this.length > LONGEST_STRING) {
      this.enter('text');
      return this.plain(character);
    }
    return '';
  }

  private plain(text: string): string {
    if (text === '') return '';
    const ended = this.options.lines ? this.endLines(text) : text;
    const silent = ended.replaceAll('\u0007', '');
    const still = this.options.lines ? silent.replaceAll('\b', '') : silent;
    return still.replace(/[^\n\t\r\b]+/g, sanitize);
  }

  /** Turns carriage returns into newlines; CR LF becomes one newline. */
  private endLines(text: string): string {
    const rest = this.afterReturn && text.startsWith('\n') ? text.slice(1) : text;
    this.afterReturn = text.endsWith('\r');
    return rest.replace(/\r\n?/g, '\n');
  }
}
