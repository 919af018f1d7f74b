/** The result of one attempt of a health check, and the words of its reasons. */
import { messageOf, systemCodeOf } from '../../kernel/fault.js';
import type { CommandResult } from '../../resources/command.js';
import type { Host } from '../../resources/host.js';

export type Attempt =
  | { readonly is: 'healthy' }
  | { readonly is: 'unhealthy'; readonly reason: string }
  /** Another attempt would end the same way. */
  | { readonly is: 'impossible'; readonly reason: string };

export interface AttemptContext {
  readonly host: Host;
  /** Ends the attempt at once. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Returns what a reason may quote of the result of a command that the check runs. */
  readonly quotable: (result: CommandResult) => CommandResult;
}

export const HEALTHY: Attempt = { is: 'healthy' };
export const unhealthy = (reason: string): Attempt => ({ is: 'unhealthy', reason });
export const impossible = (reason: string): Attempt => ({ is: 'impossible', reason });

/** Formats milliseconds as seconds with one digit at most. */
export const seconds = (milliseconds: number): string => `${Math.round(milliseconds / 100) / 10} s`;

const PROBLEMS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused the connection',
  ECONNRESET: 'broke the connection',
  EPIPE: 'broke the connection',
  ENOTFOUND: 'cannot be found: its name has no address',
  EAI_AGAIN: 'cannot be found: the name servers do not answer',
  ETIMEDOUT: 'did not answer',
  EHOSTUNREACH: 'cannot be reached',
  ENETUNREACH: 'cannot be reached',
};

/** Returns what went wrong with a connection, as text after the place. */
export function connectionProblem(error: unknown): string {
  // A host with several addresses has one error for each of them.
  const single = error instanceof AggregateError ? error.errors[0] : error;
  const code = systemCodeOf(single) ?? '';
  return PROBLEMS[code] ?? `failed: ${messageOf(single)}`;
}
