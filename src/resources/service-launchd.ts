/** `service-launchd`: whether a daemon of macOS may be loaded and runs, and with `program_arguments` its property list. */
import { type CommandResult, exitedWith } from './command.js';
import { commandFailure } from './command-failure.js';
import type { Host } from './host.js';
import { type CommandRefusal, type Decision, defineResource } from './kind.js';
import { explainLaunchd } from './services/launchd-explain.js';
import { type Daemon, isNew, planLaunchd, planLaunchdRemoval } from './services/launchd-plan.js';
import { plistPath, systemPlistPath } from './services/launchd-plist.js';
import { type LaunchdBody, LaunchdBodySchema } from './services/launchd-service-body.js';
import { checkLaunchd, IN_PLIST } from './services/launchd-service-check.js';
import { DISABLED_COMMAND, isDisabledList, LIST_COMMAND, parseDisabled, parseList } from './services/launchd-state.js';

/** A service, or why launchd does not tell of it. */
type LaunchdHave = Daemon | { readonly refusal: CommandRefusal };

export const serviceLaunchd = defineResource<LaunchdBody, LaunchdHave>({
  kind: 'service-launchd',
  family: 'service',
  platforms: ['macos'],
  schema: LaunchdBodySchema,
  check: checkLaunchd,
  identity: (body) => body.name,
  requires: (body) => [
    ...(body.user == null ? [] : [{ family: 'user', identity: body.user } as const]),
    ...(body.group == null ? [] : [{ family: 'group', identity: body.group } as const]),
    ...(body.program_arguments == null ? [{ family: 'path', identity: plistPath(body.name) } as const] : []),
  ],
  queried: true,
  read,
  exists: (have) => !('refusal' in have) && !isNew(have),
  plan: (want, have, context): Decision =>
    'refusal' in have ? failed(have.refusal) : planLaunchd(want, have, context),
  planRemoval: (last, have): Decision => ('refusal' in have ? failed(have.refusal) : planLaunchdRemoval(last, have)),
  inseparable: ['program_arguments', ...IN_PLIST],
  explain: (host, body, step, result) => explainLaunchd(host, body.name, step, result),
});

const failed = (refusal: CommandRefusal): Decision => ({ action: 'fail', ...refusal });

/** Two commands for all services, and one look at where their property lists may lie. */
async function read(host: Host, wants: readonly LaunchdBody[]): Promise<readonly LaunchdHave[]> {
  const list = await host.run({ argv: LIST_COMMAND });
  const disabled = await host.run({ argv: DISABLED_COMMAND });
  const refusal = refusalOf(list) ?? refusalOf(disabled) ?? refusalOfList(disabled);
  if (refusal) return wants.map(() => ({ refusal }));
  const loaded = parseList(list.stdout);
  const overrides = parseDisabled(disabled.stdout);
  const own = host.observe(wants.map(({ name }) => ({ path: plistPath(name), content: true, entries: false })));
  const system = host.observe(
    wants.map(({ name }) => ({ path: systemPlistPath(name), content: false, entries: false })),
  );
  return wants.map(({ name }, at) => ({
    file: own[at] ?? { type: 'absent', parent: 'directory' },
    isOfSystem: (system[at]?.type ?? 'absent') !== 'absent',
    isLoaded: loaded.has(name),
    pid: loaded.get(name) ?? null,
    isDisabled: overrides.get(name) ?? null,
  }));
}

const refusalOf = (result: CommandResult): CommandRefusal | null =>
  exitedWith(result, 0) ? null : commandFailure({ argv: ['launchctl'] }, result);

const refusalOfList = ({ stdout }: CommandResult): CommandRefusal | null =>
  isDisabledList(stdout)
    ? null
    : { code: 'observe_failed', message: 'launchctl print-disabled prints something that orch does not know' };
