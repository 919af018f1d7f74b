/** Plans services of Windows: `sc.exe` configures them, PowerShell starts and stops them. */
import type { RunStep } from '../host.js';
import type { Decision, FieldChange, PlanContext } from '../kind.js';
import type { ServiceBody, ServiceFact, StartType, WindowsService } from '../service-windows.js';
import { powershell } from './powershell.js';
import { foldCase } from './windows-case.js';
import { RESTART_SERVICE, START_SERVICE, STOP_SERVICE } from './windows-service-control.js';

const START: Readonly<Record<StartType, string>> = {
  auto: 'auto',
  auto_delayed: 'delayed-auto',
  manual: 'demand',
  disabled: 'disabled',
};

/** Fields that take effect at the next start of the service. */
const NEEDS_RESTART: ReadonlySet<string> = new Set(['binary_path', 'account']);

export function planService(want: ServiceBody, have: ServiceFact, context: PlanContext): Decision {
  switch (have.is) {
    case 'unreadable':
      return { action: 'fail', ...have.refusal };
    case 'absent':
      return planNew(want, context);
    case 'there':
      return planChange(want, have, context);
  }
}

function planNew(want: ServiceBody, { mayAppear }: PlanContext): Decision {
  const { name, binary_path, running } = want;
  if (binary_path == null) {
    // In a plan, an earlier resource may bring the service; the apply plans the steps again.
    if (mayAppear) return { action: 'update', changes: fieldsOf(want), steps: [] };
    const message = `there is no service ${name} on this machine; give binary_path to make it, or install what brings it first`;
    return { action: 'fail', code: 'unit_missing', message };
  }
  const refusal = accountRefusal(want);
  if (refusal) return refusal;
  const create = sc('create', name, settings(want));
  const describe = want.description ? [sc('description', name, [want.description])] : [];
  const start = running === true ? [control(START_SERVICE, name)] : [];
  return { action: 'create', changes: fieldsOf(want), steps: [create, ...describe, ...start] };
}

function planChange(want: ServiceBody, have: Extract<ServiceFact, { is: 'there' }>, context: PlanContext): Decision {
  const { name, running } = want;
  const { service, computer } = have;
  const changes = changesOf(want, service, computer);
  const changed = new Set(changes.map(({ field }) => field));
  if (changed.has('account')) {
    const refusal = accountRefusal(want);
    if (refusal) return refusal;
  }
  const restarts =
    service.isRunning &&
    running !== false &&
    (context.due.has('restart_on') || [...NEEDS_RESTART].some((one) => changed.has(one)));
  if (changes.length === 0 && !restarts) return { action: 'none' };
  const steps = [
    ...configSteps(want, changed),
    ...(restarts ? [control(RESTART_SERVICE, name)] : []),
    ...(changed.has('running') ? [control(running === true ? START_SERVICE : STOP_SERVICE, name)] : []),
  ];
  if (changes.length === 0) return { action: 'restart', changes, steps };
  return { action: 'update', changes, steps, ...(restarts ? { owes: 'restart_on' } : {}) };
}

function configSteps(want: ServiceBody, changed: ReadonlySet<string>): readonly RunStep[] {
  const { name } = want;
  const given = settings({
    binary_path: changed.has('binary_path') ? want.binary_path : null,
    start_type: changed.has('start_type') ? want.start_type : null,
    account: changed.has('account') ? want.account : null,
    dependencies: changed.has('dependencies') ? want.dependencies : null,
    display_name: changed.has('display_name') ? want.display_name : null,
  });
  return [
    ...(given.length === 0 ? [] : [sc('config', name, given)]),
    ...(changed.has('description') ? [sc('description', name, [want.description ?? ''])] : []),
  ];
}

/** Returns arguments of `sc.exe`: each name with an equals sign, each value as a separate argument. */
function settings(want: Omit<ServiceBody, 'name'>): readonly string[] {
  const { binary_path, start_type, account, dependencies, display_name } = want;
  return [
    ...(binary_path == null ? [] : ['binPath=', binary_path]),
    ...(start_type == null ? [] : ['start=', START[start_type]]),
    ...(account == null ? [] : ['obj=', writtenAccount(account)]),
    // A lone slash is the empty list.
    ...(dependencies == null ? [] : ['depend=', dependencies.length === 0 ? '/' : dependencies.join('/')]),
    ...(display_name == null ? [] : ['DisplayName=', display_name]),
  ];
}

const sc = (verb: string, name: string, rest: readonly string[]): RunStep => ({
  do: 'run',
  command: { argv: ['sc.exe', verb, name, ...rest] },
});

const control = (script: string, name: string): RunStep => ({ do: 'run', command: powershell(script, { name }) });

/** Returns the fields of a new service as changes. */
const fieldsOf = (want: ServiceBody): readonly FieldChange[] =>
  FIELDS.flatMap((field) => {
    const after = shown(want[field]);
    return after === null ? [] : [{ field, before: null, after }];
  });

const FIELDS = [
  'binary_path',
  'display_name',
  'description',
  'start_type',
  'account',
  'dependencies',
  'running',
] as const;

function changesOf(want: ServiceBody, have: WindowsService, computer: string): readonly FieldChange[] {
  const there = { ...have, running: have.isRunning };
  return FIELDS.flatMap((field) => {
    const [before, after] = [shown(there[field]), shown(want[field])];
    if (after === null || before === after || (before !== null && isSame(field, before, after, computer))) return [];
    return [{ field, before, after }];
  });
}

/** True for equal values; names of accounts and services ignore case. */
function isSame(field: (typeof FIELDS)[number], before: string, after: string, computer: string): boolean {
  if (field === 'account') return isSameAccount(before, after, computer);
  return field === 'dependencies' && foldCase(before) === foldCase(after);
}

function shown(value: string | boolean | readonly string[] | null | undefined): string | null {
  if (value == null) return null;
  if (typeof value === 'object') return [...value].sort((a, b) => (foldCase(a) < foldCase(b) ? -1 : 1)).join(', ');
  return String(value);
}

function accountRefusal({ name, account }: ServiceBody): Extract<Decision, { action: 'fail' }> | null {
  if (account == null || !needsPassword(account)) return null;
  const message = `the service ${name} cannot be given the account ${account}, which needs a password; set it by hand once, or take LocalSystem, NT AUTHORITY\\LocalService, NT AUTHORITY\\NetworkService, NT SERVICE\\${name} or a managed service account`;
  return { action: 'fail', code: 'service_failed', message };
}

/** System accounts by their many names. */
const SYSTEM_ACCOUNTS: Readonly<Record<string, string>> = {
  localsystem: 'localsystem',
  '.\\localsystem': 'localsystem',
  system: 'localsystem',
  'nt authority\\system': 'localsystem',
  'nt authority\\localsystem': 'localsystem',
  localservice: 'localservice',
  'nt authority\\localservice': 'localservice',
  'nt authority\\local service': 'localservice',
  networkservice: 'networkservice',
  'nt authority\\networkservice': 'networkservice',
  'nt authority\\network service': 'networkservice',
};

/** Names of system accounts for the service control manager. */
const WRITTEN: Readonly<Record<string, string>> = {
  localsystem: 'LocalSystem',
  localservice: 'NT AUTHORITY\\LocalService',
  networkservice: 'NT AUTHORITY\\NetworkService',
};

/** True when two names mean the same account; names of local accounts may begin with `computer`, the machine's name. */
function isSameAccount(one: string, other: string, computer: string): boolean {
  return canonical(one, computer) === canonical(other, computer);
}

/** Returns the name for the service control manager. */
const writtenAccount = (account: string): string => WRITTEN[canonical(account, '')] ?? account;

/** False for system accounts, virtual accounts and managed service accounts. */
function needsPassword(account: string): boolean {
  const name = canonical(account, '');
  return WRITTEN[name] === undefined && !name.startsWith('nt service\\') && !name.endsWith('$');
}

function canonical(account: string, computer: string): string {
  const folded = foldCase(account);
  const own = `${foldCase(computer)}\\`;
  const local = computer !== '' && folded.startsWith(own) ? `.\\${folded.slice(own.length)}` : folded;
  return SYSTEM_ACCOUNTS[local] ?? local;
}
