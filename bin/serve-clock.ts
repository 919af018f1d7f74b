/** `orch serve accept-clock`: asks the orchestrator of this host about its clock. */
import { askOrchestrator } from '../daemon/ask-orchestrator.js';
import type { ServeClock, ServeFlags } from '../src/cli/programs.js';
import { loadSettings } from '../src/settings/load-serve.js';

export async function serveClock({ config, ...flags }: ServeFlags, accept: boolean): Promise<ServeClock> {
  const { env } = process;
  const configFile = typeof config === 'string' ? config : (env.ORCH_SERVE_CONFIG ?? null);
  const { data_dir: dataDir } = loadSettings({ flags, env, configFile, isRoot: process.geteuid?.() === 0 });
  const { now, doubt_ms, waits, ahead_ms } = await askOrchestrator(dataDir, { verb: 'clock', accept });
  return { now: String(now), doubt_ms: Number(doubt_ms), waits: waits === true, ahead_ms: Number(ahead_ms) };
}
