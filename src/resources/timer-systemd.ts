/** `timer-systemd`: a command that systemd runs on a schedule, as a timer with its service. */
import { escapePointer } from '../kernel/validator.js';
import { type CommandRefusal, commandFailure, exitedWith, lastLines } from './command.js';
import type { Host } from './host.js';
import { type BodyProblem, type Decision, defineResource, type ReadPurpose } from './kind.js';
import { problemOfDirectory, problemOfLine, problemOfVariable } from './services/systemd-fields.js';
import { type TimerBody, TimerBodySchema } from './services/systemd-timer-body.js';
import { planTimer, planTimerRemoval, type SeenTimer, timerUnits } from './services/systemd-timer-plan.js';
import { explainUnit, judgeUnit, parseUnits, showCommand } from './services/systemd-unit.js';
import { packagedPlaces, unitIdentity, unitPath } from './services/systemd-unit-file.js';

type TimerHave = SeenTimer | { readonly refusal: CommandRefusal };

export const timerSystemd = defineResource<TimerBody, TimerHave>({
  kind: 'timer-systemd',
  family: 'service',
  platforms: ['linux'],
  schema: TimerBodySchema,
  check: checkTimer,
  identity: ({ name }) => unitIdentity(`${name}.timer`),
  requires: ({ name, user, group }) => [
    { family: 'service', identity: unitIdentity(`${name}.service`) },
    ...timerUnits(name).map((unit) => ({ family: 'path', identity: unitPath(unit) }) as const),
    ...(user == null ? [] : [{ family: 'user', identity: user } as const]),
    ...(group == null ? [] : [{ family: 'group', identity: group } as const]),
  ],
  clash({ name }, { kind, body }) {
    const isFile = timerUnits(name).some((unit) => body.path === unitPath(unit));
    const isService = kind === 'service-systemd' && unitIdentity(String(body.name)) === unitIdentity(`${name}.service`);
    return isFile || isService ? 'the timer has both unit files for itself; drop the other one' : null;
  },
  queried: true,
  read,
  exists: (have) => 'timer' in have && have.timer.file.type !== 'absent',
  plan: (want, have, context): Decision =>
    'refusal' in have ? { action: 'fail', ...have.refusal } : planTimer(want, have, context),
  planRemoval: (last, have): Decision =>
    'refusal' in have ? { action: 'fail', ...have.refusal } : planTimerRemoval(last, have),
  inseparable: ['command', 'description', 'user', 'group', 'working_directory', 'environment'],
  judge: (host, { name }, step, result) => judgeUnit(host, step.items?.[0] ?? `${name}.timer`, step, result),
  keepsWithheld: true,
  explain: (host, { name }, step, result) => explainUnit(host, step.items?.[0] ?? `${name}.timer`, step, result),
});

/** Reads all units with one command, their files, and what systemd says about the calendars. */
async function read(host: Host, wants: readonly TimerBody[], purpose: ReadPurpose): Promise<readonly TimerHave[]> {
  const names = wants.flatMap(({ name }) => timerUnits(name));
  const result = await host.run({ argv: showCommand(names) });
  const units = parseUnits(result.stdout);
  const files = host.observe(names.map((name) => ({ path: unitPath(name), content: true, entries: false })));
  const places = names.map(packagedPlaces);
  const packaged = host.observe(places.flat().map((path) => ({ path, content: false, entries: false })));
  const found = new Set(places.flat().filter((_, at) => ['file', 'symlink'].includes(packaged[at]?.type ?? 'absent')));
  const calendars = purpose === 'plan' || purpose === 'apply' ? await problemsOfCalendars(host, wants) : new Map();
  return wants.map(({ name, on_calendar }, at): TimerHave => {
    const [timer, service] = [0, 1].map((part) => ({ unit: units[2 * at + part], file: files[2 * at + part] }));
    if (!timer?.unit || !timer.file || !service?.unit || !service.file) {
      return {
        refusal: exitedWith(result, 0)
          ? { code: 'observe_failed', message: 'systemctl show says nothing of it' }
          : commandFailure({ argv: ['systemctl'] }, result),
      };
    }
    const own = [...(places[2 * at] ?? []), ...(places[2 * at + 1] ?? [])];
    return {
      timer: { unit: timer.unit, file: timer.file },
      service: { unit: service.unit, file: service.file },
      isOwn: host.ownService === `${name}.service`,
      packaged: own.find((path) => found.has(path)) ?? null,
      calendar: calendars.get(on_calendar) ?? null,
    };
  });
}

/** Returns what systemd says about calendars that it does not take; asks for each alone only if it refuses one. */
async function problemsOfCalendars(
  host: Host,
  wants: readonly TimerBody[],
): Promise<ReadonlyMap<string | null | undefined, string>> {
  const calendars = [...new Set(wants.flatMap(({ on_calendar }) => on_calendar ?? []))];
  const ask = (asked: readonly string[]) => host.run({ argv: ['systemd-analyze', 'calendar', '--', ...asked] });
  const problems = new Map<string, string>();
  if (calendars.length === 0 || exitedWith(await ask(calendars), 0)) return problems;
  for (const calendar of calendars) {
    const result = await ask([calendar]);
    // Without that program, the start of the timer tells.
    if (result.end.how === 'exited' && !exitedWith(result, 0)) {
      problems.set(calendar, lastLines({ stdout: '', stderr: result.stderr }, 1));
    }
  }
  return problems;
}

function checkTimer(body: TimerBody): readonly BodyProblem[] {
  const problems: BodyProblem[] = [];
  const add = (path: string, message: string | null) => {
    if (message !== null) problems.push({ path, message });
  };
  const { name, command, on_calendar, every, on_boot, persistent } = body;
  if (/\.(?:timer|service)$/.test(name))
    add('/name', 'name must not end in .timer or .service; it is the name of both');
  if (typeof command === 'string') add('/command', named('command', problemOfLine(command)));
  else for (const [at, word] of command.entries()) add(`/command/${at}`, problemOfArgument(word, at));
  if (on_calendar == null && every == null && on_boot == null) {
    add('', 'a timer needs "on_calendar", "every" or "on_boot"');
  }
  if (on_calendar != null) add('/on_calendar', problemOfCalendar(on_calendar));
  if (persistent != null && on_calendar == null) add('/persistent', 'persistent is for on_calendar alone');
  add('/description', named('description', problemOfLine(body.description ?? 'none')));
  add('/working_directory', named('working_directory', problemOfDirectory(body.working_directory ?? '/')));
  for (const [variable, value] of Object.entries(body.environment ?? {})) {
    add(`/environment/${escapePointer(variable)}`, problemOfVariable(variable, value));
  }
  return problems;
}

const named = (name: string, problem: string | null): string | null => (problem === null ? null : `${name} ${problem}`);

function problemOfArgument(word: string, at: number): string | null {
  if (/[\p{Cc}\p{Surrogate}]/u.test(word)) return 'an argument must be one line of text';
  return at === 0 && !/^[A-Za-z0-9_/]/.test(word)
    ? 'the first argument must be a program, as a path or as a name that systemd finds'
    : null;
}

/** Returns why a text cannot be a calendar of systemd, or null; systemd of the machine has the last word. */
function problemOfCalendar(text: string): string | null {
  if (/^[\d*/,-]+(?: +[\d*/,A-Za-z-]+){4}$/.test(text.trim())) {
    return 'on_calendar looks like a schedule of cron; that of systemd is such as "Mon..Fri 03:00" or "*-*-* *:00/15"';
  }
  return /^[A-Za-z0-9*,./:~_+ -]+$/.test(text) && text.trim() === text
    ? null
    : 'on_calendar must be a calendar of systemd such as "daily", "Mon..Fri 03:00" or "*-*-01 04:00"';
}
