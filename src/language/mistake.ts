/** A mistake in a module before its place is turned into a line and a column. */
import type { DiagnosticCode } from './diagnostic-code.js';

/** A range of the text; `end` equals `start` when only the start is worth pointing at. */
export interface Place {
  readonly start: number;
  readonly end: number;
}

export interface Mistake extends Place {
  readonly severity: 'error' | 'warning';
  readonly code: DiagnosticCode;
  readonly message: string;
  /** JSON pointer to the value, or to the member that is unknown or missing. */
  readonly path: string;
}

/** Takes mistakes in, in any order. */
export class MistakeList {
  readonly #found: Mistake[] = [];

  error(code: DiagnosticCode, message: string, path: string, place: Place): void {
    this.#found.push({ severity: 'error', code, message, path, start: place.start, end: place.end });
  }

  warning(code: DiagnosticCode, message: string, path: string, place: Place): void {
    this.#found.push({ severity: 'warning', code, message, path, start: place.start, end: place.end });
  }

  addAll(mistakes: readonly Mistake[]): void {
    for (const mistake of mistakes) this.#found.push(mistake);
  }

  get found(): readonly Mistake[] {
    return this.#found;
  }

  get failed(): boolean {
    return this.#found.some((mistake) => mistake.severity === 'error');
  }
}
