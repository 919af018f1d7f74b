/** The property lists that orch writes for launchd. */
import type { LaunchdBody } from '../service-launchd.js';

/** Marks a file that orch wrote. */
const MARKER = '<!-- Managed by orch: what is changed here by hand will be undone. -->';

const HEAD = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
${MARKER}
`;

/** Returns the path for services of the administrator. */
export const plistPath = (name: string): string => `/Library/LaunchDaemons/${name}.plist`;

/** Returns the path for services of the system, which are read-only. */
export const systemPlistPath = (name: string): string => `/System/Library/LaunchDaemons/${name}.plist`;

export const isOurPlist = (text: string): boolean => text.startsWith(HEAD);

/** True when an XML property list disables itself. */
export const isDisabledByItself = (text: string): boolean => /<key>\s*Disabled\s*<\/key>\s*<true\s*\/>/.test(text);

type Value = string | boolean | readonly string[] | Readonly<Record<string, string>> | null | undefined;

/** Returns the property list; equal bodies have equal texts. */
export function plistText(body: LaunchdBody): string {
  const members: readonly (readonly [string, Value])[] = [
    ['Label', body.name],
    ['ProgramArguments', body.program_arguments],
    ['RunAtLoad', body.run_at_load],
    ['KeepAlive', body.keep_alive],
    ['UserName', body.user],
    ['GroupName', body.group],
    ['WorkingDirectory', body.working_directory],
    ['EnvironmentVariables', body.environment],
    ['StandardOutPath', body.standard_out_path],
    ['StandardErrorPath', body.standard_error_path],
  ];
  const lines = members.flatMap(([key, value]) => (value == null ? [] : [`  <key>${key}</key>`, ...valueLines(value)]));
  const about = body.description == null ? '' : `<!-- ${comment(body.description)} -->\n`;
  return `${HEAD}${about}<plist version="1.0">\n<dict>\n${lines.join('\n')}\n</dict>\n</plist>\n`;
}

function valueLines(value: NonNullable<Value>): readonly string[] {
  if (typeof value === 'string') return [`  ${text(value)}`];
  if (typeof value === 'boolean') return [value ? '  <true/>' : '  <false/>'];
  if (isList(value)) return ['  <array>', ...value.map((item) => `    ${text(item)}`), '  </array>'];
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  const members = entries.flatMap(([key, item]) => [`    <key>${escaped(key)}</key>`, `    ${text(item)}`]);
  return ['  <dict>', ...members, '  </dict>'];
}

const isList = (value: NonNullable<Value>): value is readonly string[] => Array.isArray(value);

const text = (value: string): string => `<string>${escaped(value)}</string>`;

const escaped = (value: string): string =>
  value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Separates hyphens, because two would end a comment. */
const comment = (value: string): string => value.replace(/-(?=-|$)/g, '- ');
