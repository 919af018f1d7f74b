/** The one error class: everything that we refuse or fail at on purpose is a Fault. */
import type { FaultCode } from './fault-code.js';

/** One mistake among several in the same input. `path` is a JSON pointer; line and column start at 1. */
export interface FaultDetail {
  readonly path: string;
  readonly message: string;
  readonly line?: number;
  readonly column?: number;
}

export interface FaultOptions {
  /** What to do next, as a sentence or a command to type. */
  readonly hint?: string;
  readonly cause?: unknown;
  /** Every single mistake, for validation faults. */
  readonly errors?: readonly FaultDetail[];
  /** Facts for programs; ends up in the problem document, so it holds no secret. */
  readonly data?: Readonly<Record<string, unknown>>;
}

export class Fault extends Error {
  override readonly name = 'Fault';
  readonly code: FaultCode;
  readonly hint: string | undefined;
  readonly errors: readonly FaultDetail[] | undefined;
  readonly data: Readonly<Record<string, unknown>> | undefined;

  /**
   * @param code the stable code; behaviour may hang on it, never on the message
   * @param message one sentence for a person: what happened, naming the place
   */
  constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.errors = options.errors;
    this.data = options.data;
  }
}

/** Tells whether something caught is a Fault, and if codes are given, one of those. */
export function isFault(error: unknown, ...codes: readonly FaultCode[]): error is Fault {
  return error instanceof Fault && (codes.length === 0 || codes.includes(error.code));
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The `code` of a system error (`ENOENT`, `EACCES`, …), or undefined. */
export function systemCodeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
