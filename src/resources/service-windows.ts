/** `service-windows`: a service of Windows with its configuration and running state. */

import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import type { CommandRefusal } from './command.js';
import { recordsOf, textOf, textsOf } from './json-answer.js';
import { type BodyProblem, type Decision, defineResource } from './kind.js';
import { portHolders } from './services/port-holders.js';
import { powershell, readAnswer } from './windows/powershell.js';
import { foldCase } from './windows/windows-case.js';
import { READ_SERVICES, STOP_SERVICE, serviceFailure } from './windows/windows-service-control.js';
import { planService } from './windows/windows-service-plan.js';

/** The start types of `sc.exe` that modules can declare. */
const START_TYPES = ['auto', 'auto_delayed', 'manual', 'disabled'] as const;
export type StartType = (typeof START_TYPES)[number];

export interface WindowsService {
  readonly isRunning: boolean;
  readonly binary_path: string;
  readonly display_name: string;
  readonly description: string;
  /** Drivers have other types too, in Windows' own spelling. */
  readonly start_type: StartType | (string & {});
  readonly account: string;
  readonly dependencies: readonly string[];
}

export type ServiceFact =
  | { readonly is: 'absent' }
  /** `computer` is the machine's name. */
  | { readonly is: 'there'; readonly computer: string; readonly service: WindowsService }
  | { readonly is: 'unreadable'; readonly refusal: CommandRefusal };

/** Converts a Win32_Service with its `DependOn`. A starting service does not count as running. */
const serviceOf = (service: Readonly<Record<string, unknown>>): WindowsService => ({
  isRunning: service.State === 'Running',
  binary_path: textOf(service.PathName),
  display_name: textOf(service.DisplayName),
  description: textOf(service.Description),
  start_type: startTypeOf(textOf(service.StartMode), service.DelayedAutoStart === true),
  account: textOf(service.StartName),
  dependencies: textsOf(service.DependOn),
});

function startTypeOf(mode: string, isDelayed: boolean): WindowsService['start_type'] {
  if (mode === 'Auto') return isDelayed ? 'auto_delayed' : 'auto';
  return mode.toLowerCase();
}

/** One line without control characters; arguments of programs cannot hold a NUL. */
const LINE = '^[^\\u0000-\\u001f]*$';

const serviceSchema = closed({
  name: Type.String({ minLength: 1, maxLength: 256, description: 'Name of the service, not its display name' }),
  running: optional(Type.Boolean({ description: 'Whether it runs; null: not managed' })),
  binary_path: optional(
    Type.String({ minLength: 1, pattern: LINE, description: 'Command line; with it the service is made when missing' }),
  ),
  display_name: optional(
    Type.String({ minLength: 1, maxLength: 256, pattern: LINE, description: 'Name that people see' }),
  ),
  description: optional(Type.String({ maxLength: 1024, pattern: LINE, description: 'What it is for' })),
  start_type: optional(Type.Enum(START_TYPES, { description: 'When Windows starts it' })),
  account: optional(
    Type.String({ minLength: 1, pattern: LINE, description: 'Account without a password, such as LocalSystem' }),
  ),
  dependencies: optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 256, pattern: LINE }), {
      description: 'Services that have to run first; "+NAME" is a group of services',
    }),
  ),
  restart_on: optional(
    Type.Array(Type.String({ minLength: 1 }), { description: 'Ids of resources whose change restarts it' }),
  ),
});

export type ServiceBody = Type.Static<typeof serviceSchema>;

/** Checks rules beyond the schema. */
const checkService = ({ name, dependencies }: ServiceBody): readonly BodyProblem[] => [
  ...checkName('/name', name),
  ...(dependencies ?? []).flatMap((one, at) => checkName(`/dependencies/${at}`, one.replace(/^\+/, ''))),
];

function checkName(path: string, name: string): readonly BodyProblem[] {
  const refuse = (message: string) => [{ path, message: `the service name ${JSON.stringify(name)} ${message}` }];
  if (name === '' || name.trim() !== name) return refuse('must not be empty or begin or end with a space');
  if (/[/\\\u0000-\u001f]/.test(name)) return refuse('must not contain slashes, backslashes or control characters');
  return [];
}

export const serviceWindows = defineResource<ServiceBody, ServiceFact>({
  kind: 'service-windows',
  family: 'service',
  platforms: ['windows'],
  schema: serviceSchema,
  check: checkService,
  identity: ({ name }) => foldCase(name),
  obstacles: portHolders,
  requires: ({ dependencies }) =>
    (dependencies ?? [])
      .filter((one) => !one.startsWith('+'))
      .map((one) => ({ family: 'service', identity: foldCase(one) })),
  queried: true,

  async read(host, wants) {
    const command = powershell(READ_SERVICES, { names: wants.map(({ name }) => name) });
    const read = readAnswer(command, await host.run(command));
    if ('refusal' in read) return wants.map(() => ({ is: 'unreadable', refusal: read.refusal }));
    const computer = textOf(read.answer.computer);
    const services = new Map(recordsOf(read.answer.services).map((one) => [foldCase(textOf(one.Name)), one]));
    return wants.map(({ name }) => {
      const service = services.get(foldCase(name));
      return service ? { is: 'there', computer, service: serviceOf(service) } : { is: 'absent' };
    });
  },

  exists: (have) => have.is !== 'absent',

  plan: planService,

  planRemoval({ name, binary_path }, have): Decision {
    if (have.is === 'unreadable') return { action: 'fail', ...have.refusal };
    if (have.is === 'absent') return { action: 'none' };
    if (binary_path == null) return { action: 'release', reason: `orch did not make the service ${name}` };
    const stop = have.service.isRunning ? [{ do: 'run', command: powershell(STOP_SERVICE, { name }) } as const] : [];
    return {
      action: 'remove',
      changes: [],
      steps: [...stop, { do: 'run', command: { argv: ['sc.exe', 'delete', name] } }],
    };
  },

  keepsWithheld: true,
  explain: (_host, { name }, step, result) => serviceFailure(name, step, result),
});
