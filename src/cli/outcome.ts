/** What a command gives back: data for programs, a view for people, names for scripts, and how it ended. */
import type { ExitStatus } from './exit-status.js';

export interface Outcome {
  /** The API's own body, printed with `-o json` and `-o yaml`; absent when there is none. */
  readonly body?: unknown;
  /** With `-o json` the body is one line, with `-o yaml` a document of its own: for answers that go on without end. */
  readonly oneLine?: true;
  /** Printed with `-o name`, one a line. */
  readonly names?: readonly string[];
  readonly view?: View;
  /** Printed with `-o dot`. */
  readonly dot?: string;
  /** 0 when absent. */
  readonly exitStatus?: ExitStatus | number;
}

/** Several outcomes are printed as they come: the pages of a long list. The last exit status counts. */
export type Outcomes = Outcome | AsyncIterable<Outcome>;

/** What a command shows to people, as data: nothing here is printed before the renderer has made it harmless. */

export type Style = 'strong' | 'dim' | 'good' | 'bad' | 'warn' | 'accent';

/** A piece of text of one look. Text is what it is: control characters in it are shown, not obeyed. */
export type Span = string | { readonly text: string; readonly style: Style };
export type Line = Span | readonly Span[];

export interface Column {
  readonly title: string;
  /** Shown with `-o wide` only. */
  readonly wide?: boolean;
  /** Never cut to fit the terminal: identifiers that people copy. */
  readonly whole?: boolean;
  readonly right?: boolean;
}

export interface TableView {
  readonly kind: 'table';
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Span[])[];
  /** Said instead of an empty table. */
  readonly empty: string;
  /** False for a further page: the titles stand above already. */
  readonly titles?: boolean;
}

export interface FieldsView {
  readonly kind: 'fields';
  readonly fields: readonly (readonly [label: string, value: Line])[];
}

export interface LinesView {
  readonly kind: 'lines';
  readonly lines: readonly Line[];
}

/** Views with an empty line between them. */
export interface StackView {
  readonly kind: 'stack';
  readonly views: readonly View[];
}

/** A view with a heading right above it. */
export interface HeadedView {
  readonly kind: 'headed';
  readonly head: Line;
  readonly body: View;
}

export type View = TableView | FieldsView | LinesView | StackView | HeadedView;

export const styled = (style: Style, text: string): Span => ({ text, style });
/** A list whose length depends on data goes through the `…Of` forms: a call takes about 125,000 arguments and no more. */
export const linesOf = (all: readonly Line[]): LinesView => ({ kind: 'lines', lines: all });
export const fieldsOf = (all: FieldsView['fields']): FieldsView => ({ kind: 'fields', fields: all });
export const stackOf = (views: readonly View[]): StackView => ({ kind: 'stack', views });

export const lines = (...all: readonly Line[]): LinesView => linesOf(all);
export const fields = (...all: FieldsView['fields']): FieldsView => fieldsOf(all);
export const stack = (...views: readonly View[]): StackView => stackOf(views);

export const headed = (head: string, body: View): HeadedView => ({
  kind: 'headed',
  head: styled('strong', head),
  body,
});

/** Text of several lines, one view line each; a trailing line end adds none. */
export function textLines(content: string, style?: Style): readonly Line[] {
  if (content === '') return [];
  const all = content.replace(/\r?\n$/, '').split(/\r?\n/);
  return style ? all.map((line) => styled(style, line)) : all;
}
