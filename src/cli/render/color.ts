/** Whether a stream gets colours. */
import type { Env } from '../context.js';

/** `--no-color`, then `FORCE_COLOR`, then `NO_COLOR`, then whether the stream is a terminal that knows colours. */
export function wantsColor(env: Env, noColor: boolean, isTerminal: boolean): boolean {
  if (noColor) return false;
  const forced = env.FORCE_COLOR;
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  if (env.NO_COLOR) return false;
  return isTerminal && env.TERM !== 'dumb';
}
