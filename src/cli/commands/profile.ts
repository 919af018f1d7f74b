/** The commands of `orch profile`. */

import { resolve } from 'node:path';
import { profilesPath, requireState } from '../../client/operator-files.js';
import type { Profile } from '../../client/profile-file.js';
import {
  loadProfiles,
  type Profiles,
  requireProfile,
  saveProfiles,
  withoutProfile,
  withProfile,
} from '../../client/profiles.js';
import { parseServerUrl, urlText } from '../../client/server-url.js';
import { formatFingerprint, parseFingerprint } from '../../identity/fingerprint.js';
import { Fault } from '../../kernel/fault.js';
import { API_PORT } from '../../kernel/ports.js';
import { argument, defineCommand } from '../define-command.js';
import { textOrNone } from '../format.js';
import type { Globals } from '../global-options.js';
import { choice, flag } from '../options.js';
import { type Column, type FieldsView, fieldsOf, lines, type Span, stack, styled } from '../outcome.js';

export const profileOptions = {
  allowPlainHttp: flag('speak plain HTTP to hosts beyond loopback'),
} as const;

/** `orch profile create`. */
export const createProfile = defineCommand({
  examples: [
    `orch profile create home --url https://orch.home:${API_PORT}`,
    `orch profile create work --url https://orch.example:${API_PORT} --tls-fingerprint 9f86d081…`,
  ],
  detail: ['Without --tls-fingerprint or --ca the first connection shows the certificate and asks.'],
  access: 'local',
  connection: true,
  args: { name: argument('NAME', 'name to give it') },
  options: profileOptions,
  run: async ({ env, globals }, { name, ...given }) => {
    requireState(env);
    if (globals.url === undefined)
      throw new Fault('usage', 'a profile needs an address', { hint: `add --url https://HOST:${API_PORT}` });
    const profiles = await loadProfiles(profilesPath(env));
    if (Object.hasOwn(profiles.byName, name)) {
      throw new Fault('usage', `there is a profile "${name}" already`, {
        hint: `change it with: orch profile update ${name}`,
      });
    }
    const profile = { url: urlText(parseServerUrl(globals.url, '--url')), ...givenMembers(globals, given) };
    const changed = { ...withProfile(profiles, name, profile), standard: profiles.standard ?? name };
    await saveProfiles(changed);
    const message =
      changed.standard === name ? `${name} is the default now.` : `Make it the default with: orch profile use ${name}`;
    return {
      body: profileBody(changed, name),
      names: [name],
      view: stack(profileFields(name, profile), lines(message)),
    };
  },
});

/** `orch profile update`. */
const FORGETTABLE = ['tls-fingerprint', 'ca', 'key-file', 'allow-unbound-login', 'allow-plain-http'] as const;

/** `orch profile update`. */
export const updateProfile = defineCommand({
  examples: ['orch profile update home --tls-fingerprint 9f86d081…', 'orch profile update home --forget key-file'],
  detail: ['Members that are not given stay.'],
  access: 'local',
  connection: true,
  args: { name: argument('NAME', 'the profile', 'profile') },
  options: { ...profileOptions, forget: choice('WHAT', FORGETTABLE, 'remember this no longer') },
  run: async ({ env, globals }, { name, forget, ...given }) => {
    requireState(env);
    const profiles = await loadProfiles(profilesPath(env));
    const before = requireProfile(profiles, name);
    const url = globals.url === undefined ? {} : { url: urlText(parseServerUrl(globals.url, '--url')) };
    const members = { ...url, ...givenMembers(globals, given) };
    if (forget === undefined && Object.keys(members).length === 0) {
      throw new Fault('usage', 'nothing to change was given', { hint: 'see: orch profile update --help' });
    }
    const profile = without({ ...before, ...members }, forget);
    const changed = withProfile(profiles, name, profile);
    await saveProfiles(changed);
    return { body: profileBody(changed, name), names: [name], view: profileFields(name, profile) };
  },
});

const PROFILE_COLUMNS: readonly Column[] = [
  { title: '' },
  { title: 'NAME', whole: true },
  { title: 'URL' },
  { title: 'CERTIFICATE', spare: 1 },
  { title: 'KEY FILE', spare: 2 },
];

/** `orch profile list`. */
export const listProfiles = defineCommand({
  examples: ['orch profile list'],
  access: 'local',
  columns: PROFILE_COLUMNS,
  run: async ({ env }) => {
    const profiles = await loadProfiles(profilesPath(env));
    const names = Object.keys(profiles.byName).sort();
    return {
      body: names.map((name) => profileBody(profiles, name)),
      names,
      view: {
        kind: 'table',
        columns: PROFILE_COLUMNS,
        rows: names.map((name) => {
          const profile = profiles.byName[name];
          const trust = profile?.tls_fingerprint ?? profile?.ca;
          return [marked(profiles, name), name, profile?.url ?? '', textOrNone(trust), textOrNone(profile?.key_file)];
        }),
        empty: `No profiles. Make one with: orch profile create NAME --url https://HOST:${API_PORT}`,
      },
    };
  },
});

/** `orch profile use`. */
export const useProfile = defineCommand({
  examples: ['orch profile use home'],
  access: 'local',
  args: { name: argument('NAME', 'the profile', 'profile') },
  run: async ({ env }, { name }) => {
    requireState(env);
    const profiles = await loadProfiles(profilesPath(env));
    const { url } = requireProfile(profiles, name);
    const changed = { ...profiles, standard: name };
    await saveProfiles(changed);
    return { body: profileBody(changed, name), names: [name], view: lines(`${name} (${url}) is the default now.`) };
  },
});

/** `orch profile remove`. */
export const removeProfile = defineCommand({
  examples: ['orch profile remove home'],
  detail: ['Forgets the address and its certificate. The key file stays.'],
  access: 'local',
  args: { name: argument('NAME', 'the profile', 'profile') },
  run: async ({ env }, { name }) => {
    requireState(env);
    await saveProfiles(withoutProfile(await loadProfiles(profilesPath(env)), name));
    return { names: [name], view: lines(`Forgot the profile ${name}.`) };
  },
});

/** Returns the profile members that the options give. Throws `usage` for an invalid fingerprint. */
export function givenMembers(globals: Globals, { allowPlainHttp }: { readonly allowPlainHttp: boolean }) {
  const { tlsFingerprint, ca, keyFile, allowUnboundLogin } = globals;
  return {
    ...(tlsFingerprint === undefined ? {} : { tls_fingerprint: parseFingerprint(tlsFingerprint, '--tls-fingerprint') }),
    ...(ca === undefined ? {} : { ca: wherever(ca) }),
    ...(keyFile === undefined ? {} : { key_file: wherever(keyFile) }),
    ...(allowUnboundLogin ? { allow_unbound_login: true } : {}),
    ...(allowPlainHttp ? { allow_plain_http: true } : {}),
  };
}

/** Makes a path absolute; `~/` stays, because the profile reader expands it. */
const wherever = (path: string): string => (path.startsWith('~/') ? path : resolve(path));

function without(profile: Profile, flag: (typeof FORGETTABLE)[number] | undefined): Profile {
  const { url, ...members } = profile;
  const member = flag?.replaceAll('-', '_');
  return { url, ...Object.fromEntries(Object.entries(members).filter(([key]) => key !== member)) };
}

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

/** Returns `*` for the default profile. */
export const marked = ({ standard }: Profiles, name: string): Span => (name === standard ? styled('good', '*') : ' ');

/** Returns the JSON body of a profile: its stored members and its name. */
export const profileBody = ({ standard, byName }: Profiles, name: string) => ({
  name,
  default: name === standard,
  ...byName[name],
});
