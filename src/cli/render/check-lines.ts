/** Health checks of a run: those that will run in one line, and their results. */
import type { CheckResult } from '../../resources/checks/check.js';
import { count } from '../format.js';
import { type Line, type Span, styled, textLines } from '../outcome.js';
import { spansOf } from './paint.js';

/** Maximum number of named checks in one line. */
const NAMED = 5;

/** Renders the checks of a plan as one line, and those of an apply by result. Healthy ones are only counted unless `verbose`. */
export function checkLines(checks: readonly CheckResult[], verbose: boolean): readonly Line[] {
  if (checks.length === 0) return [];
  if (checks.every(({ status }) => status === 'pending')) return [plannedLine(checks)];
  const shown = checks.filter(({ status }) => verbose || status === 'unhealthy');
  return [...shown.flatMap(resultLines), countLine(checks)];
}

function plannedLine(checks: readonly CheckResult[]): Line {
  const names = checks.slice(0, NAMED).map(({ module, name }) => `${module} "${name}"`);
  const more = checks.length > NAMED ? ` and ${checks.length - NAMED} more` : '';
  return [
    styled('strong', 'Checks: '),
    ...spansOf(textOf(`${count(checks.length, 'health check')} to run afterwards: ${names.join(', ')}${more}.`)),
  ];
}

/** Returns the text on one line, with control characters escaped. */
const textOf = (text: string): Line => textLines(text)[0] ?? '';

function resultLines({ module, name, status, duration_ms, reason }: CheckResult): readonly Line[] {
  const took = status === 'not_run' ? '' : `  ${(duration_ms / 1000).toFixed(1)} s`;
  const head: Line = ['  ', MARKS[status], ...spansOf(textOf(` ${module} "${name}"`)), styled('dim', took)];
  return [head, ...(reason === null ? [] : textLines(reason).map((line): Line => ['      ', ...spansOf(line)]))];
}

const MARKS: Readonly<Record<CheckResult['status'], Span>> = {
  pending: styled('dim', 'pending'),
  healthy: styled('good', 'healthy'),
  unhealthy: styled('bad', 'unhealthy'),
  not_run: styled('warn', 'not run'),
};

function countLine(checks: readonly CheckResult[]): Line {
  const number = (wanted: CheckResult['status']) => checks.filter(({ status }) => status === wanted).length;
  const parts: readonly (readonly [number, Span])[] = [
    [number('healthy'), `${number('healthy')} healthy`],
    [number('unhealthy'), styled('bad', `${number('unhealthy')} unhealthy`)],
    [number('not_run'), styled('warn', `${number('not_run')} not run`)],
  ];
  const given = parts.filter(([found]) => found > 0).map(([, span]) => span);
  return [styled('strong', 'Checks: '), ...given.flatMap((span, index) => (index === 0 ? [span] : [', ', span])), '.'];
}
