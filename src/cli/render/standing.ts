/** Shows standings of agents: how machines relate to what their assignments give them. */
import type { Agent } from '../../contract/agents.js';
import { STANDINGS, type StopCode } from '../../contract/standing-names.js';
import type { StandingCounts, Trial } from '../../contract/standings.js';
import { formatTime, NONE } from '../format.js';
import { type Line, type Span, styled } from '../outcome.js';

const WORDS = {
  never_applied: ['never applied', 'warn'],
  behind: ['behind', 'warn'],
  drifted: ['drifted', 'bad'],
  in_sync: ['in sync', 'good'],
  on_trial: ['on trial', 'warn'],
  unmanaged: ['unmanaged', 'dim'],
} as const;

/** Returns the standing in a word or two, and that automatic applies have stopped. */
export function standingSpan({ standing, automation_stopped }: Agent): Span {
  if (standing === null) return NONE;
  const [word, style] = WORDS[standing];
  return automation_stopped === null ? styled(style, word) : styled('bad', `${word} (stopped)`);
}

/** Returns the fields of an agent about its standing. */
export function standingFields(agent: Agent): readonly (readonly [label: string, value: Line])[] {
  const { standing, standing_since, standing_reason, automation_stopped } = agent;
  if (standing === null) return [];
  const since = standing_since === null ? '' : ` since ${formatTime(standing_since)}`;
  const [word, style] = WORDS[standing];
  const reason = standing_reason === null ? '' : `: ${standing_reason}`;
  const stopped =
    automation_stopped === null
      ? []
      : [
          [
            'Automation',
            [
              styled('bad', `stopped since ${formatTime(automation_stopped.since)}`),
              `: ${automation_stopped.message}${goOn(agent, automation_stopped.code)}`,
            ],
          ] as const,
        ];
  return [['Standing', [styled(style, word), `${since}${reason}`]], ...trialFields(agent), ...stopped];
}

/** Returns how an operator goes on. A stop because of changed facts names the command itself: resuming would stop again. */
const goOn = ({ name, node_id }: Agent, code: StopCode): string =>
  code === 'facts_removal' ? '' : `; go on: orch apply ${name ?? node_id}, or orch assignments resume ASSIGNMENT`;

/** Returns the field of a trial: who began it, and what ends it. Older orchestrators know no trials. */
function trialFields({ trial = null, name, node_id }: Agent): readonly (readonly [label: string, value: Line])[] {
  if (trial === null) return [];
  return [['Trial', trialText(trial, name ?? node_id)]];
}

/** Returns what is on trial on an agent, since which operation, and how to publish it. */
export function trialText({ modules, operation_id }: Trial, agent: string): string {
  const names = modules.map(({ module }) => module).join(', ');
  return `${names} of operation ${operation_id}, not published; publish with: orch module publish --from ${agent}`;
}

/** Returns the numbers of agents such as `7 in sync, 2 behind`, without standings that no agent has. */
export function standingCounts(counts: StandingCounts): Line {
  const parts = STANDINGS.filter((standing) => counts[standing] > 0).map((standing) => {
    const [word, style] = WORDS[standing];
    return styled(style, `${counts[standing]} ${word}`);
  });
  return parts.length === 0 ? NONE : parts.flatMap((part, index) => (index === 0 ? [part] : [', ', part]));
}
