/** What a script wrote, as a person reads it. */
import type { Output } from '../../resources/result.js';
import { type Line, styled, textLines } from '../view.js';
import { spansOf } from './paint.js';

export function outputLines({ stdout, stderr, exit_code: status, truncated }: Output): readonly Line[] {
  return [
    ...textLines(stdout),
    ...textLines(stderr).map((line): Line => [styled('warn', 'stderr| '), ...spansOf(line)]),
    ...(truncated ? [styled('warn', '(cut: the beginning and the end are kept)')] : []),
    styled(status === 0 ? 'dim' : 'bad', status === null ? 'it did not end by itself' : `exit status ${status}`),
  ];
}
