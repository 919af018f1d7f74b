/** Grants and ends of operators as the command line has them. */
import type { Grant } from '../../contract/rights.js';
import { Fault } from '../../kernel/fault.js';
import { list, text } from '../options.js';
import { parseAhead } from '../parse-time.js';

export const grantOption = list('GRANT', 'limit the rights of the role, as RIGHTS:SELECTOR');

export const GRANT_DETAIL = [
  'A grant has rights or roles by comma, a colon, and a selector of machines by tags and node_id: deployer:env=dev.',
  'Every grant lets the operator read these machines. orch operator rights lists the rights.',
];

export const expiresOption = text('TIME', 'end, as a date, RFC 3339, or a duration such as 90d');

export const EXPIRY_DETAIL = 'After the end the operator may do nothing. A notification announces it a week before.';

/** Returns an end in Unix seconds. @param now Unix milliseconds @throws Fault `usage` */
export const expiryOf = (given: string, now: number): number =>
  Math.floor(Date.parse(parseAhead(given, '--expires', now)) / 1000);

/** Returns grants from texts such as `deployer:env=dev`: rights or roles by comma, a colon and a selector. Throws `usage`. */
export function grantsOf(texts: readonly string[]): Grant[] {
  return texts.map((text) => {
    const at = placeOfSelector(text);
    const selector = text.slice(at + 1).trim();
    if (at < 0 || selector === '') {
      throw new Fault('usage', `"${text}" is no grant: it has rights, a colon and a selector of machines`, {
        hint: 'write for example deployer:env=dev, or exec,terminal:env in (dev, test)',
      });
    }
    const rights = text.slice(0, at).split(',');
    return { rights: rights.map((right) => right.trim()), selector };
  });
}

/** Returns where the colon before the selector is: the right `tag:KEY` has one of its own, the right `tag` has none. */
function placeOfSelector(text: string): number {
  const at = text.indexOf(':');
  if (!/(^|,)\s*tag$/.test(text.slice(0, Math.max(at, 0)))) return at;
  const after = placeOfSelector(text.slice(at + 1));
  return after < 0 ? at : at + 1 + after;
}

/** Returns a grant as a sentence part. */
export const sayGrant = ({ rights, selector }: Grant): string => `${rights.join(', ')} on ${selector}`;
