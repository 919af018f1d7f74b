/** How enrolment tokens are shown. There is no token to show. */
import type { EnrolmentTokenRecord } from '../../../contract/enrolment-tokens.js';
import { count, formatAge, formatTags, formatTime, orNone } from '../../format.js';
import type { NameOfOperator } from '../../operator-names.js';
import { type Span, styled, type TableView } from '../../view.js';

export const tokenTable = (
  tokens: readonly EnrolmentTokenRecord[],
  nameOf: NameOfOperator,
  now: number,
): TableView => ({
  kind: 'table',
  columns: [
    { title: 'TOKEN', whole: true },
    { title: 'STATE' },
    { title: 'EXPIRES' },
    { title: 'USES LEFT', right: true },
    { title: 'APPROVES' },
    { title: 'TAGS' },
    { title: 'BY' },
    { title: 'LAST USED' },
  ],
  rows: tokens.map((token) => [
    token.id,
    stateOf(token, now),
    formatTime(token.expires_at),
    `${token.uses_left} of ${token.uses}`,
    token.auto_approve ? styled('warn', 'yes') : 'no',
    orNone(formatTags(token.tags)),
    nameOf(token.created_by),
    orNone(formatAge(token.last_used_at, now)),
  ]),
  empty: 'No enrolment tokens. Make one with: orch enroll create',
});

/** `lets one machine wait for approval until …`, to go on behind the token's name. */
export function promiseOf({ uses, auto_approve, tags, expires_at }: EnrolmentTokenRecord): string {
  const who = uses === 1 ? 'one machine' : `up to ${count(uses, 'machine')}`;
  const what = auto_approve ? `approves ${who} at once` : `lets ${who} wait for approval`;
  const tagged = Object.keys(tags).length === 0 ? '' : `, with the tags ${formatTags(tags)}`;
  return `${what}${tagged}, until ${formatTime(expires_at)}`;
}

function stateOf({ uses_left, expires_at }: EnrolmentTokenRecord, now: number): Span {
  if (uses_left === 0) return styled('dim', 'used up');
  return expires_at * 1000 <= now ? styled('dim', 'expired') : styled('good', 'open');
}
