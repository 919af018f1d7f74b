/** The words of a command's arguments and options, for its help, its page in the documents and its man page. */
import type { Argument, Command } from '../define-command.js';
import { CONSENT_OPTIONS, optionsBeside } from '../global-options.js';
import { flagOf, type Option, type Options } from '../options.js';
import { argumentSyntax } from '../parse-input.js';
import { tableOptions } from '../table-options.js';

/** Returns the command line of a command, with its arguments and required options. */
export function usageOf(path: string, { args, options }: Command): string {
  const syntaxOf = (dashed: boolean) =>
    Object.values(args).flatMap((argument: Argument<unknown>) =>
      (argument.dashed ?? false) === dashed ? argumentSyntax(argument) : [],
    );
  const required = Object.entries(options)
    .filter(([, option]) => option.required)
    .map(([key, option]) => `${flagOf(key, option)} ${option.placeholder}`);
  const rest = Object.values(options).some((option) => !option.required) ? ['[OPTIONS]'] : [];
  return ['orch', path, ...syntaxOf(false), ...required, ...rest, ...syntaxOf(true)].join(' ');
}

/** Returns the flags of each option, aligned for a table, with their meaning. */
export const optionRows = (options: Options): readonly (readonly [string, string])[] =>
  Object.entries(options).map(([key, option]) => [optionSyntax(key, option), optionSummary(option)] as const);

/** Returns the flags of an option, aligned for a table. */
export function optionSyntax(key: string, option: Option<unknown>): string {
  const short = option.short === null ? '    ' : `-${option.short}, `;
  return `${short}${flagOf(key, option)}${valueSyntax(option)}`;
}

function valueSyntax({ placeholder, bare }: Option<unknown>): string {
  if (placeholder === null) return '';
  return bare === null ? ` ${placeholder}` : `[=${placeholder}]`;
}

/** Returns the meaning of an option, with its choices. */
export function optionSummary({ summary, choices, many }: Option<unknown>): string {
  const words = choices === null ? '' : `: ${choices.join(', ')}`;
  return `${summary}${words}${many ? ' (repeatable)' : ''}`;
}

/** Returns a sentence about the required role; null if each operator may run the command. */
export function accessOf({ access }: Command): string | null {
  if (access === 'admin') return 'Needs the role admin.';
  if (access === 'enroll') return 'Needs the role admin, or a permission for it.';
  return access === 'operator' ? 'Not for viewers.' : null;
}

/** Returns the options that the help of a command explains: its own, and the common ones that mean something of their own there. */
export const explainedOptions = (command: Command): Options => ({
  ...command.options,
  ...(tableOptions(command.columns) ?? {}),
  ...(command.consent ? CONSENT_OPTIONS : {}),
  ...(command.formats.length > 0 ? { output: optionsBeside(command).output } : {}),
});
