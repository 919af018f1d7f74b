/** Reads a selector token by token, and says where and why it is none. */
import { Fault } from '../kernel/fault.js';
import { quoted } from './printable.js';
import { type SelectorToken, selectorTokens } from './selector-token.js';

const EXAMPLE = 'write terms such as "platform=linux, env in (prod,stage), !legacy", or "*" for every agent';

/** Takes the tokens of a selector one by one. */
export class SelectorReader {
  readonly #text: string;
  readonly #tokens: readonly SelectorToken[];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = selectorTokens(text);
  }

  get next(): SelectorToken {
    return this.#tokens[this.#at] ?? { type: 'end', text: '', offset: this.#text.length };
  }

  advance(): void {
    this.#at += 1;
  }

  accept(type: SelectorToken['type']): boolean {
    if (this.next.type !== type) return false;
    this.advance();
    return true;
  }

  fail(message: string): Fault {
    return selectorFault(this.#text, this.next.offset, message);
  }

  expected(what: string): Fault {
    const { type, text } = this.next;
    if (type === 'end')
      return this.fail(`${what} is expected ${this.#text.trim() === '' ? 'in an empty selector' : 'at the end'}`);
    const advice = type === 'unknown' && /["']/.test(text) ? '; values are written without quotes' : '';
    return this.fail(
      `${what} is expected instead of ${type === 'unknown' ? printableSign(text) : quoted(text)}${advice}`,
    );
  }
}

/** A quote in quotes reads badly. */
const printableSign = (text: string): string => (text === '"' ? "'\"'" : quoted(text));

export function selectorFault(text: string, offset: number, message: string): Fault {
  const position = offset + 1;
  return new Fault('invalid_selector', `selector ${quoted(text)}, position ${position}: ${message}`, {
    hint: EXAMPLE,
    data: { position },
  });
}
