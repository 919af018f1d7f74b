/** `service-systemd`: whether a unit starts at boot and runs, and with `exec_start` its unit file. */
import { type CommandResult, exitedWith } from './command.js';
import { commandFailure } from './command-failure.js';
import type { Host } from './host.js';
import { type CommandRefusal, type Decision, defineResource, type ReadPurpose } from './kind.js';
import { explainUnit, judgeUnit } from './services/systemd-explain.js';
import { planUnit } from './services/systemd-plan.js';
import type { SeenUnit } from './services/systemd-refusal.js';
import { planUnitRemoval } from './services/systemd-removal.js';
import { type ServiceBody, ServiceBodySchema } from './services/systemd-service-body.js';
import { checkService, IN_UNIT_FILE } from './services/systemd-service-check.js';
import { parseUnits, showCommand } from './services/systemd-unit.js';
import { unitPath, unitPlaces } from './services/systemd-unit-file.js';
import { unitIdentity, unitNameOf } from './services/systemd-unit-name.js';

/** A unit, or why systemd does not tell of it. */
type UnitHave = SeenUnit | { readonly refusal: CommandRefusal };

export const serviceSystemd = defineResource<ServiceBody, UnitHave>({
  kind: 'service-systemd',
  family: 'service',
  platforms: ['linux'],
  schema: ServiceBodySchema,
  check: checkService,
  identity: (body) => unitIdentity(body.name),
  requires: (body) => [
    ...(body.user == null ? [] : [{ family: 'user', identity: body.user } as const]),
    ...(body.group == null ? [] : [{ family: 'group', identity: body.group } as const]),
    ...(body.exec_start == null ? unitPlaces(body.name) : []).map(
      (identity) => ({ family: 'path', identity }) as const,
    ),
    ...(body.dependencies ?? []).map((name) => ({ family: 'service', identity: unitIdentity(name) }) as const),
  ],
  queried: true,
  read,
  exists: (have) => 'unit' in have && (have.unit.load !== 'not-found' || (have.file?.type ?? 'absent') !== 'absent'),
  plan: (want, have, context): Decision => ('refusal' in have ? failed(have.refusal) : planUnit(want, have, context)),
  planRemoval: (last, have): Decision => ('refusal' in have ? failed(have.refusal) : planUnitRemoval(last, have)),
  inseparable: ['exec_start', ...IN_UNIT_FILE],
  judge: (host, body, step, result) => judgeUnit(host, unitNameOf(body.name), step, result),
  explain: (host, body, step, result) => explainUnit(host, unitNameOf(body.name), step, result),
});

const failed = (refusal: CommandRefusal): Decision => ({ action: 'fail', ...refusal });

/**
 * One command for all units, whatever is asked of them, and one look at the unit files that orch writes. A removal looks for
 * one that an earlier body has left, too.
 */
async function read(host: Host, wants: readonly ServiceBody[], purpose: ReadPurpose): Promise<readonly UnitHave[]> {
  const result = await host.run({ argv: showCommand(wants.map(({ name }) => unitNameOf(name))) });
  const units = parseUnits(result.stdout);
  const written = wants.filter(({ exec_start }) => exec_start != null || purpose === 'removal');
  const facts = host.observe(written.map(({ name }) => ({ path: unitPath(name), content: true, entries: false })));
  return wants.map((want, at) => {
    const unit = units[at];
    const file = written.includes(want) ? (facts[written.indexOf(want)] ?? null) : null;
    return unit ? { unit, file } : { refusal: refusalOf(result) };
  });
}

const refusalOf = (result: CommandResult): CommandRefusal =>
  exitedWith(result, 0)
    ? { code: 'observe_failed', message: 'systemctl show says nothing of it' }
    : commandFailure({ argv: ['systemctl'] }, result);
