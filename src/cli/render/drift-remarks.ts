/** Details of a drifted resource: why it does not count, when it was changed, and what ran then. */
import type { DriftResource, LikelyCause } from '../../contract/runs.js';
import { formatTime } from '../format.js';
import { type Line, styled } from '../outcome.js';

type Remarks = Pick<DriftResource, 'excuse' | 'changed_at' | 'likely_causes'>;

/** Returns the remarks, one a line, without indentation. */
export function driftRemarks({ excuse, changed_at, likely_causes }: Remarks): readonly Line[] {
  const causes = likely_causes ?? [];
  return [
    ...(excuse == null ? [] : [styled('accent', excuseText(excuse))]),
    ...(changed_at == null ? [] : [styled('dim', `changed ${formatTime(changed_at)}`)]),
    ...causes.map((cause) => styled('warn', `likely cause: ${causeText(cause)}`)),
  ];
}

function excuseText({ kind, until, reason }: NonNullable<Remarks['excuse']>): string {
  const why = reason === null ? '' : `: ${reason}`;
  return kind === 'snoozed' ? `snoozed until ${formatTime(until)}${why}` : `accepted until the next apply${why}`;
}

function causeText({ kind, id, by, started_at, ended_at, offset_secs }: LikelyCause): string {
  const span = `${formatTime(started_at)} to ${ended_at === null ? 'now' : formatTime(ended_at)}`;
  if (kind === 'apply') return `operation ${id}, ${span} (see: orch ops show ${id})`;
  const what = kind === 'terminal' ? 'terminal session' : 'command';
  const see =
    offset_secs === null
      ? `see: orch term show ${id}`
      : `replay: orch term replay ${id} --at ${placeText(offset_secs)}`;
  return `${what} ${id} of ${by}, ${span} (${see})`;
}

/** Formats seconds as `--at` takes them: `0:25` or `1:02:03`. */
function placeText(seconds: number): string {
  const two = (number: number) => String(number).padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  const rest = two(seconds % 60);
  return minutes < 60 ? `${minutes}:${rest}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${rest}`;
}
