/** `service-openrc`: whether a service of OpenRC starts in a runlevel and runs. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { type CommandRefusal, commandFailure, withLines } from './command.js';
import type { RunStep, Step } from './host.js';
import { type Decision, defineResource, type FieldChange, type PlanContext } from './kind.js';
import { initScript, isDown, isUp, type OpenrcService, readOpenrc } from './services/openrc-service.js';
import { portHolders } from './services/port-holders.js';

const ids = (description: string) => Type.Array(Type.String({ minLength: 1 }), { description });
const WORD = '^[A-Za-z0-9_][A-Za-z0-9_.+-]*$';

const schema = closed({
  name: Type.String({ pattern: WORD, maxLength: 128, description: 'Name of the script in /etc/init.d' }),
  enabled: optional(Type.Boolean({ description: 'Whether it starts with its runlevel; null: not managed' })),
  running: optional(Type.Boolean({ description: 'Whether it runs; null: not managed' })),
  runlevel: optional(
    Type.String({ pattern: WORD, maxLength: 64, description: 'Runlevel that it starts in [default: default]' }),
  ),
  reload_on: optional(ids('Ids of resources whose change reloads it; one that cannot be reloaded is restarted')),
  restart_on: optional(ids('Ids of resources whose change restarts it')),
});

type OpenrcBody = Type.Static<typeof schema>;
type OpenrcHave = OpenrcService | CommandRefusal;

export const serviceOpenrc = defineResource<OpenrcBody, OpenrcHave>({
  kind: 'service-openrc',
  family: 'service-openrc',
  platforms: ['linux'],
  schema,
  check: ({ runlevel, enabled }) =>
    runlevel != null && enabled !== true
      ? [
          {
            path: '/runlevel',
            message: 'runlevel is for "enabled: true"; false takes the service out of all runlevels',
          },
        ]
      : [],
  identity: ({ name }) => name,
  requires: ({ name }) => [
    { family: 'path', identity: initScript(name) },
    { family: 'path', identity: `/etc/conf.d/${name}` },
  ],
  obstacles: portHolders,
  read: (host, wants) =>
    readOpenrc(
      host,
      wants.map(({ name }) => name),
    ),
  exists: (have) => !('code' in have) && have.script.type !== 'absent',

  plan(want, have, context): Decision {
    if ('code' in have) return { action: 'fail', ...have };
    const { name } = want;
    const { script } = have;
    if (script.type === 'unreadable') return { action: 'fail', code: script.code, message: script.message };
    if (script.type === 'absent') return planMissing(want, context);
    const enabling = enablingOf(want, have);
    if ('action' in enabling) return enabling;
    const running = runningOf(want, have, context);
    const steps = [...enabling.steps, ...running.steps];
    if (steps.length === 0) return { action: 'none' };
    const changes = [...enabling.changes, ...running.changes];
    const answer = running.verb === 'reload' ? 'reload' : 'restart';
    return {
      action: changes.length > 0 ? 'update' : answer,
      changes,
      steps,
      ...(have.state === 'crashed' && running.changes.length > 0 ? { reason: `${name} has crashed` } : {}),
    };
  },

  planRemoval({ name }, have): Decision {
    if ('code' in have) return { action: 'fail', ...have };
    const isThere = have.script.type !== 'absent';
    const steps = [...(isThere && !isDown(have) ? [service(name, 'stop')] : []), ...outOf(name, have.runlevels)];
    return steps.length === 0 ? { action: 'none' } : { action: 'remove', changes: [], steps };
  },

  keepsWithheld: true,
  explain: (_host, { name }, { command }, result) => {
    const [program] = command.argv;
    if (result.end.how === 'exited' && isDenied(program, `${result.stderr}\n${result.stdout}`)) {
      const message = `this user may not change the service ${name}; run the agent as root (${withLines(program, result, 2)})`;
      return { code: 'permission_denied', message };
    }
    if (result.end.how !== 'exited' || program !== 'rc-service') return commandFailure(command, result);
    const verb = command.argv.at(-1) ?? '';
    const sentence = SENTENCES[verb];
    if (sentence === undefined) return commandFailure(command, result);
    return { code: 'service_failed', message: withLines(`${name} ${sentence}`, result) };
  },
});

/** Returns whether OpenRC says that the user may not change its services. A service that is started has messages of its own. */
const isDenied = (program: string, said: string): boolean =>
  /superuser access required/i.test(said) || (program === 'rc-update' && /: Permission denied$/im.test(said));

const SENTENCES: Readonly<Record<string, string>> = {
  start: 'could not be started',
  stop: 'could not be stopped; if its process has ended by itself, "rc-service NAME zap" lets OpenRC forget it',
  restart: 'could not be restarted; if its process has ended by itself, "rc-service NAME zap" lets OpenRC forget it',
  reload: 'could not be reloaded and runs as before',
  status: 'was started and does not run',
};

/** Longer than scripts wait for a service to stop. */
const TIMEOUT_SECS = 300;

type Verb = 'start' | 'stop' | 'restart' | 'reload' | 'zap' | 'status';

const service = (name: string, verb: Verb): RunStep => ({
  do: 'run',
  command: { argv: ['rc-service', '--nocolor', name, verb], timeoutSecs: TIMEOUT_SECS },
});

/** Statuses of a service that runs or waits. */
const UP = [0, 8, 16];

/** A service that cannot read its configuration or open its port ends within that time. */
const seeRunning = (name: string): readonly RunStep[] => [
  { do: 'run', command: { argv: ['sleep', '0.5'] } },
  { ...service(name, 'status'), ok: UP },
];

const outOf = (name: string, runlevels: readonly string[]): readonly RunStep[] =>
  runlevels.length === 0 ? [] : [{ do: 'run', command: { argv: ['rc-update', 'del', name, ...runlevels] } }];

interface Part {
  readonly changes: readonly FieldChange[];
  readonly steps: readonly Step[];
}

const NOTHING: Part = { changes: [], steps: [] };

/** Plans a missing script: an earlier resource may bring it, so every managed field is still to be done. */
function planMissing({ name, enabled, running, runlevel }: OpenrcBody, context: PlanContext): Decision {
  const path = initScript(name);
  if (!context.mayAppear && !(context.purpose === 'plan' && context.declares('path', path))) {
    const message = `there is no ${path} on this machine; declare the package or the file that brings it before`;
    return { action: 'fail', code: 'unit_missing', message };
  }
  const changes: FieldChange[] = [];
  if (enabled != null) {
    changes.push({ field: 'enabled', before: null, after: enabled ? (runlevel ?? DEFAULT) : 'disabled' });
  }
  if (running != null) changes.push({ field: 'running', before: null, after: running ? 'started' : 'stopped' });
  const reason = `there is no ${path} yet; something that is changed before has to bring it`;
  return { action: 'update', changes, steps: [], reason };
}

const DEFAULT = 'default';

function enablingOf({ name, enabled, runlevel }: OpenrcBody, { runlevels, known }: OpenrcService): Part | Decision {
  if (enabled == null) return NOTHING;
  const before = runlevels.length === 0 ? 'disabled' : runlevels.join(', ');
  if (!enabled) {
    if (runlevels.length === 0) return NOTHING;
    return { changes: [{ field: 'enabled', before, after: 'disabled' }], steps: outOf(name, runlevels) };
  }
  const level = runlevel ?? DEFAULT;
  if (runlevels.includes(level)) return NOTHING;
  if (!known.includes(level)) {
    const message = `this machine has no runlevel ${level}; it has ${known.join(', ')}`;
    return { action: 'fail', code: 'value_unknown', message };
  }
  const add: RunStep = { do: 'run', command: { argv: ['rc-update', 'add', name, level] } };
  return { changes: [{ field: 'enabled', before, after: level }], steps: [add] };
}

function runningOf(
  { name, running }: OpenrcBody,
  have: OpenrcService,
  { due }: PlanContext,
): Part & { readonly verb?: 'restart' | 'reload' } {
  const change = (after: string) => [{ field: 'running', before: have.state, after }];
  if (running === true && !isUp(have)) {
    // OpenRC takes a crashed service for started, and does not start it again before it has forgotten it.
    const forget = have.state === 'crashed' ? [service(name, 'zap')] : [];
    return { changes: change('started'), steps: [...forget, service(name, 'start'), ...seeRunning(name)] };
  }
  if (running === false && !isDown(have)) {
    return { changes: change('stopped'), steps: [service(name, 'stop')] };
  }
  // A stopped service needs no restart.
  if (!isUp(have)) return NOTHING;
  if (due.has('restart_on') || (due.has('reload_on') && !have.canReload)) {
    return { ...NOTHING, verb: 'restart', steps: [service(name, 'restart'), ...seeRunning(name)] };
  }
  if (!due.has('reload_on')) return NOTHING;
  return { ...NOTHING, verb: 'reload', steps: [service(name, 'reload'), { ...service(name, 'status'), ok: UP }] };
}
