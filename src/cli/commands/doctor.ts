/** `orch doctor`: checks the set-up of this machine and this user, and names the fix of each problem. */

import { CHECK_STATES, type CheckState, type DoctorCheck } from '../../programs/doctor-check.js';
import { defineCommand } from '../define-command.js';
import { examineOperator } from '../doctor/operator.js';
import { examineOrchestrator } from '../doctor/orchestrator.js';
import { EXIT } from '../exit-status.js';
import { type Line, lines, proseOf, type Style, stack, styled, textLines, type View } from '../outcome.js';

/** `orch doctor`. */
export const examineSetup = defineCommand({
  examples: ['orch doctor', 'orch doctor --profile home -o json'],
  detail: [
    'Checks Node.js and the native modules, your key and profiles, the way to the orchestrator with its certificate,',
    'clock, version and your login, and the agent and the orchestrator of this machine: service, settings, data',
    'directory, journal, store and disk. It changes nothing. Only root sees the data of services. Each check is ok, a',
    'note, a warning or a problem, and says how to fix it. Ends with 1 when there is a problem.',
  ],
  access: 'local',
  connection: true,
  run: async (context) => {
    const operator = await examineOperator(context);
    const [machine, orchestrator] = await Promise.all([
      context.programs.doctor(),
      examineOrchestrator(context, operator),
    ]);
    const checks = [...machine, ...operator.checks, ...orchestrator];
    const problems = checks.filter(({ state }) => state === 'problem');
    return {
      body: checks,
      names: problems.map(({ name }) => name),
      view: stack(checksView(checks), lines(summaryOf(checks))),
      exitStatus: problems.length === 0 ? EXIT.done : EXIT.error,
    };
  },
});

const STYLES: Readonly<Record<CheckState, Style>> = { ok: 'good', note: 'dim', warning: 'warn', problem: 'bad' };

/** Returns a line for each check: state, name and finding in columns; and its fix below it. */
function checksView(checks: readonly DoctorCheck[]): View {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const first = Math.max(...CHECK_STATES.map((state) => state.length));
  const indent = ' '.repeat(first + width + 4);
  const all = checks.flatMap(({ name, state, found, fix }): readonly Line[] => {
    const [head = '', ...rest] = textLines(found);
    const fixes = fix === null ? [] : textLines(fix);
    // A note names nothing that is broken.
    const word = state === 'note' ? 'hint: ' : 'fix: ';
    return [
      [styled(STYLES[state], state.padEnd(first)), `  ${name.padEnd(width)}  `, head].flat(),
      ...rest.map((line) => [indent, line].flat()),
      ...fixes.map((line, index) => [
        `${indent}${index === 0 ? word : ' '.repeat(word.length)}`,
        styled('strong', String(line)),
      ]),
    ];
  });
  return proseOf(all, indent.length);
}

function summaryOf(checks: readonly DoctorCheck[]): string {
  const count = (state: CheckState, noun: string): readonly string[] => {
    const number = checks.filter((check) => check.state === state).length;
    return number === 0 ? [] : [`${number} ${noun}${number === 1 ? '' : 's'}`];
  };
  const found = [...count('problem', 'problem'), ...count('warning', 'warning')];
  return found.length === 0 ? 'No problems.' : `${found.join(' and ')}.`;
}
