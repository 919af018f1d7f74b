/** Decides by the machine's own settings which targets operators may reach. */
import { Fault } from '../../kernel/fault.js';
import { type ForwardKind, type ForwardTarget, parseHostPort, targetText } from '../../kernel/forward-target.js';
import type { AgentSettings } from '../../settings/agent.js';

export type ForwardSettings = Pick<AgentSettings, 'forward.targets' | 'ssh_proxy.targets'>;

/** Setting with the permitted targets of each kind. */
const SETTING = { forward: 'forward.targets', 'ssh-proxy': 'ssh_proxy.targets' } as const;

/** Throws `forward_refused` with the first target that the settings do not permit. */
export function permitTargets(kind: ForwardKind, targets: readonly ForwardTarget[], settings: ForwardSettings): void {
  const name = SETTING[kind];
  const permitted = settings[name];
  const refused = targets.find((target) => !permitted.some((entry) => permits(entry, target)));
  if (refused === undefined) return;
  const what = permitted.length === 0 ? 'no targets' : `no connections to ${targetText(refused)}`;
  const use = kind === 'forward' ? 'of orch forward' : 'of orch ssh-proxy';
  throw new Fault(
    'forward_refused',
    `this agent permits ${what} ${use}; ${name} would have to name ${targetText(refused)}`,
  );
}

/** Compares names without case, and resolves none: an entry with a name permits exactly that name. */
function permits(entry: string, target: ForwardTarget): boolean {
  if ('path' in target) return entry === target.path;
  const parsed = parseHostPort(entry);
  if (parsed === null) return false;
  const isHost = parsed.host === '*' || parsed.host.toLowerCase() === target.host.toLowerCase();
  return isHost && (parsed.port === '*' || parsed.port === target.port);
}
