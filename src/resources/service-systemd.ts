/** `service-systemd`: whether a unit starts at boot and runs, and with `exec_start` its unit file. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { escapePointer } from '../kernel/validator.js';
import { type CommandRefusal, type CommandResult, commandFailure, exitedWith } from './command.js';
import type { Host } from './host.js';
import { type BodyProblem, type Decision, defineResource, type ReadPurpose } from './kind.js';
import { portHolders } from './services/port-holders.js';
import { problemOfDirectory, problemOfLine, problemOfVariable, processFields } from './services/systemd-fields.js';
import { checkMask } from './services/systemd-mask.js';
import { planUnit, planUnitRemoval, type SeenUnit, unitExists } from './services/systemd-plan.js';
import { explainUnit, judgeUnit, parseUnits, showCommand, showIdsCommand, type Unit } from './services/systemd-unit.js';
import {
  enabledThrough,
  packagedPlaces,
  problemOfUnitName,
  UNIT_NAME_PATTERN,
  unitAt,
  unitIdentity,
  unitNameOf,
  unitPath,
  unitPlaces,
} from './services/systemd-unit-file.js';

const UnitName = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: UNIT_NAME_PATTERN,
  description: 'Name of a unit: letters, digits, ":", "_", ".", "-" and "@"',
});
const ids = (description: string) => Type.Array(Type.String({ minLength: 1 }), { description });

const ServiceBodySchema = closed({
  name: Type.String({
    minLength: 1,
    maxLength: 255,
    pattern: UNIT_NAME_PATTERN,
    description: 'Name of the unit: letters, digits, ":", "_", ".", "-" and "@"; without a suffix it means .service',
  }),
  enabled: optional(Type.Boolean({ description: 'Whether it starts at boot; null: not managed' })),
  running: optional(Type.Boolean({ description: 'Whether it is active; null: not managed' })),
  masked: optional(Type.Boolean({ description: 'Whether it cannot be started at all; null: not managed' })),
  exec_start: optional(
    Type.String({
      minLength: 1,
      description:
        'Command line as systemd reads it; with it orch writes the unit file, without it the unit must exist',
    }),
  ),
  description: optional(Type.String({ description: 'What the unit is, for people' })),
  type: optional(
    Type.Enum(['simple', 'exec', 'forking', 'oneshot', 'notify', 'dbus', 'idle'], {
      description: 'How systemd knows that it has started',
    }),
  ),
  ...processFields,
  restart: optional(
    Type.Enum(['always', 'on_failure', 'never'], {
      description: 'When systemd starts it again after it has ended',
    }),
  ),
  dependencies: optional(Type.Array(UnitName, { description: 'Units that it requires and that start before it' })),
  reload_on: optional(ids('Ids of resources whose change reloads it; one that cannot be reloaded is restarted')),
  restart_on: optional(ids('Ids of resources whose change restarts it')),
});

export type ServiceBody = Type.Static<typeof ServiceBodySchema>;

/** Members that are only written to a unit file. */
const IN_UNIT_FILE = [
  'description',
  'type',
  'user',
  'group',
  'working_directory',
  'environment',
  'restart',
  'dependencies',
] as const;

function checkService(body: ServiceBody): readonly BodyProblem[] {
  const problems: BodyProblem[] = [];
  const add = (path: string, message: string | null) => {
    if (message !== null) problems.push({ path, message });
  };
  add('/name', named('name', problemOfUnitName(body.name)));
  problems.push(...checkMask(body));
  if (body.exec_start == null) {
    for (const field of IN_UNIT_FILE) {
      if (body[field] != null)
        add(`/${field}`, `${field} needs exec_start: without it orch does not write the unit file`);
    }
    return problems;
  }
  if (!unitNameOf(body.name).endsWith('.service'))
    add('/exec_start', 'exec_start is only for units that end in .service');
  add('/exec_start', named('exec_start', problemOfLine(body.exec_start)));
  add('/description', named('description', problemOfLine(body.description ?? 'none')));
  add('/working_directory', named('working_directory', problemOfDirectory(body.working_directory ?? '/')));
  for (const [name, value] of Object.entries(body.environment ?? {})) {
    add(`/environment/${escapePointer(name)}`, problemOfVariable(name, value));
  }
  for (const [at, name] of (body.dependencies ?? []).entries()) {
    add(`/dependencies/${at}`, named(name, problemOfUnitName(name)));
  }
  if (body.type === 'oneshot' && body.restart === 'always') {
    add('/restart', 'systemd refuses restart: always for type: oneshot; use on_failure');
  }
  return problems;
}

const named = (name: string, problem: string | null): string | null => (problem === null ? null : `${name} ${problem}`);

/** A unit, or why systemd does not report it. */
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
  thingsOf: unitIds,
  obstacles: portHolders,
  read,
  exists: (have) => 'unit' in have && unitExists(have),
  plan: (want, have, context): Decision => ('refusal' in have ? failed(have.refusal) : planUnit(want, have, context)),
  planRemoval: (last, have): Decision => ('refusal' in have ? failed(have.refusal) : planUnitRemoval(last, have)),
  inseparable: ['exec_start', ...IN_UNIT_FILE],
  judge: (host, body, step, result) => judgeUnit(host, unitNameOf(body.name), step, result),
  keepsWithheld: true,
  explain: (host, body, step, result) => explainUnit(host, unitNameOf(body.name), step, result),
});

/** Returns the units' own names, which differ from those of aliases; asks only if there are two. */
async function unitIds(host: Host, wants: readonly ServiceBody[]): Promise<readonly (string | null)[]> {
  if (wants.length < 2) return wants.map(() => null);
  const result = await host.run({ argv: showIdsCommand(wants.map(({ name }) => unitNameOf(name))) });
  const units = parseUnits(result.stdout);
  return wants.map((_, at) => units[at]?.id || null);
}

const failed = (refusal: CommandRefusal): Decision => ({ action: 'fail', ...refusal });

/**
 * Reads all units with one command and observes the unit files that orch writes. A removal also looks for a file of an earlier
 * body.
 */
async function read(host: Host, wants: readonly ServiceBody[], purpose: ReadPurpose): Promise<readonly UnitHave[]> {
  const result = await host.run({ argv: showCommand(wants.map(({ name }) => unitNameOf(name))) });
  const units = parseUnits(result.stdout);
  const written = wants.filter(({ exec_start }) => exec_start != null || purpose === 'removal');
  const facts = host.observe(written.map(({ name }) => ({ path: unitPath(name), content: true, entries: false })));
  return wants.map((want, at) => {
    const unit = units[at];
    const file = written.includes(want) ? (facts[written.indexOf(want)] ?? null) : null;
    if (!unit) return { refusal: refusalOf(result) };
    const isWritten = want.exec_start != null && purpose !== 'removal';
    const isOwn = unit.id === host.ownService;
    return {
      unit,
      file,
      isWritten,
      isOwn,
      ...(purpose === 'removal' ? belowOf(host, want) : enablingOf(host, want, unit)),
      ...maskPlaceOf(host, want),
    };
  });
}

/** Looks for a unit file of a package below the one that orch writes. */
function belowOf(host: Host, { name, exec_start }: ServiceBody): Pick<SeenUnit, 'isOverPackage'> {
  if (exec_start == null) return {};
  const places = host.observe(packagedPlaces(name).map((path) => ({ path, content: false, entries: false })));
  return places.some(({ type }) => type === 'file' || type === 'symlink') ? { isOverPackage: true } : {};
}

/** Looks at the place where a mask comes. */
function maskPlaceOf(host: Host, { name, masked }: ServiceBody): Pick<SeenUnit, 'place'> {
  if (masked !== true) return {};
  const [place] = host.observe([{ path: unitPath(name), content: false, entries: false }]);
  return place === undefined ? {} : { place };
}

/** Looks at the files of a unit whose enabling touches more than its own links. */
function enablingOf(host: Host, { enabled, exec_start }: ServiceBody, unit: Unit): Pick<SeenUnit, 'also' | 'linkedTo'> {
  if (enabled == null || exec_start != null) return {};
  if (unit.enablement === 'indirect') {
    const [fact] = host.observe([{ path: unit.path, content: true, entries: false }]);
    return fact?.type === 'file' && fact.content.kind === 'text' ? { also: enabledThrough(fact.content.text) } : {};
  }
  if (enabled || !unit.enablement.startsWith('enabled')) return {};
  const [fact] = host.observe([{ path: unitPath(unit.id), content: false, entries: false }]);
  if (fact?.type !== 'symlink') return {};
  const target = fact.target.startsWith('/') ? fact.target : `/etc/systemd/system/${fact.target}`;
  return target.endsWith(`/${unit.id}`) && unitAt(target) === null ? { linkedTo: target } : {};
}

const refusalOf = (result: CommandResult): CommandRefusal =>
  exitedWith(result, 0)
    ? { code: 'observe_failed', message: 'systemctl show says nothing of it' }
    : commandFailure({ argv: ['systemctl'] }, result);
