/** `service-windows`: a service of Windows, whether it runs and how it is set up. */
import { recordsOf, textOf } from './json-answer.js';
import { type Decision, defineResource } from './kind.js';
import { powershell, readAnswer } from './windows/powershell.js';
import { foldCase } from './windows/windows-case.js';
import { type ServiceFact, serviceOf } from './windows/windows-service.js';
import { checkService, type ServiceBody, serviceSchema } from './windows/windows-service-body.js';
import { serviceFailure } from './windows/windows-service-failure.js';
import { planService } from './windows/windows-service-plan.js';
import { READ_SERVICES, STOP_SERVICE } from './windows/windows-service-scripts.js';

export const serviceWindows = defineResource<ServiceBody, ServiceFact>({
  kind: 'service-windows',
  family: 'service',
  platforms: ['windows'],
  schema: serviceSchema,
  check: checkService,
  identity: ({ name }) => foldCase(name),
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

  explain: (_host, { name }, step, result) => serviceFailure(name, step, result),
});
