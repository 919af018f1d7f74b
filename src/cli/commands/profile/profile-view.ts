/** How profiles are shown. */
import type { Profile } from '../../../client/profile.js';
import type { Profiles } from '../../../client/profiles.js';
import { formatFingerprint } from '../../../identity/fingerprint.js';
import { type FieldsView, fieldsOf, type Span, styled } from '../../view.js';

export function profileFields(name: string, profile: Profile): FieldsView {
  const optional: readonly (readonly [string, string | undefined])[] = [
    ['Certificate', profile.tls_fingerprint && formatFingerprint(profile.tls_fingerprint)],
    ['Authority', profile.ca],
    ['Key file', profile.key_file],
    ['Unbound login', profile.allow_unbound_login ? 'allowed' : undefined],
    ['Plain HTTP', profile.allow_plain_http ? 'allowed' : undefined],
  ];
  const given = optional.flatMap(([label, value]) => (value === undefined ? [] : [[label, value] as const]));
  return fieldsOf([['Profile', name], ['URL', profile.url], ...given]);
}

/** `*` marks the default one. */
export const marked = ({ standard }: Profiles, name: string): Span => (name === standard ? styled('good', '*') : ' ');

/** The body for programs: the profile as it stands in the file, with its name. */
export const profileBody = ({ standard, byName }: Profiles, name: string) => ({
  name,
  default: name === standard,
  ...byName[name],
});
