/** What the settings of this machine permit operators, as the agent reports it and `orch doctor` shows it. */
import type { AgentSettings } from '../settings/agent.js';

type ConsentSettings = Pick<
  AgentSettings,
  | 'remote_terminal.enabled'
  | 'remote_terminal.user'
  | 'forward.targets'
  | 'ssh_proxy.targets'
  | 'copy.read'
  | 'copy.write'
>;

/** Attributes of the agent. No module can name them, because a machine's modules must not depend on who may log in. */
export interface Permissions {
  /** `no`, `yes` for the user of the agent, or `as USER`. */
  readonly permits_terminal: string;
  /** `no`, or the permitted targets. */
  readonly permits_forward: string;
  /** Like `permits_forward`, for `orch ssh-proxy`. */
  readonly permits_ssh_proxy: string;
  /** `no`, or the paths that `orch cp` may read and write. */
  readonly permits_copy: string;
}

/** Maximum characters of the value of an attribute. */
const MOST = 256;

export function permissionsOf(settings: ConsentSettings): Permissions {
  const user = settings['remote_terminal.user'];
  const terminal = user === '' ? 'yes' : `as ${user}`.slice(0, MOST);
  return {
    permits_terminal: settings['remote_terminal.enabled'] ? terminal : 'no',
    permits_forward: targetsText(settings['forward.targets']),
    permits_ssh_proxy: targetsText(settings['ssh_proxy.targets']),
    permits_copy: pathsText(settings['copy.read'], settings['copy.write']),
  };
}

function pathsText(read: readonly string[], write: readonly string[]): string {
  const most = Math.floor((MOST - 'read , write '.length) / 2);
  const parts = [
    ...(read.length === 0 ? [] : [`read ${targetsText(read, most, 'paths')}`]),
    ...(write.length === 0 ? [] : [`write ${targetsText(write, most, 'paths')}`]),
  ];
  return parts.length === 0 ? 'no' : parts.join(', ');
}

/** Returns as many targets as fit, and the number of the others. */
function targetsText(targets: readonly string[], most = MOST, noun = 'targets'): string {
  if (targets.length === 0) return 'no';
  for (let shown = targets.length; shown > 0; shown -= 1) {
    const rest = targets.length - shown;
    const text = targets.slice(0, shown).join(' ') + (rest === 0 ? '' : ` and ${rest} more`);
    if (text.length <= most) return text;
  }
  return `${targets.length} ${noun}`;
}
