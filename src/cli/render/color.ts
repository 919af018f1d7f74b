/** Whether a stream gets colours. */
import type { Env } from '../context.js';

/**
 * Decides by `--no-color`, then `FORCE_COLOR` and `CLICOLOR_FORCE`, then `NO_COLOR` and `CLICOLOR=0`, then by whether the stream is a
 * terminal that knows colours.
 */
export function wantsColor(env: Env, noColor: boolean, isTerminal: boolean): boolean {
  if (noColor) return false;
  const forced = env.FORCE_COLOR;
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  if (env.CLICOLOR_FORCE && env.CLICOLOR_FORCE !== '0') return true;
  if (env.NO_COLOR || env.CLICOLOR === '0') return false;
  return isTerminal && env.TERM !== 'dumb';
}
