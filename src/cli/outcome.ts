/** The result of a command: data for programs, a view for people, names for scripts, and the exit status. */
import type { ExitStatus } from './exit-status.js';

export interface Outcome {
  /** Body of the API, printed with `-o json` and `-o yaml`; absent if there is none. */
  readonly body?: unknown;
  /** For endless streams: `-o json` prints the body on one line, `-o yaml` as its own document. */
  readonly oneLine?: true;
  /** Records of a list that can be watched, parallel to `names` and to the rows of the table in `view`. */
  readonly records?: readonly unknown[];
  /** True for one state of a watched list. */
  readonly watched?: true;
  /** Printed with `-o name`, one per line. */
  readonly names?: readonly string[];
  readonly view?: View;
  /** True for lines that the operator copies, which a pager would only hide. */
  readonly unpaged?: true;
  /** Printed with `-o dot`. */
  readonly dot?: string;
  /** Exit status [0]. */
  readonly exitStatus?: ExitStatus | number;
}

/** Outcomes of a stream are printed as they come, such as the pages of a long list. The last exit status counts. */
export type Outcomes = Outcome | AsyncIterable<Outcome>;

/** `selected` is the chosen row of a live list. */
export type Style = 'strong' | 'dim' | 'good' | 'bad' | 'warn' | 'accent' | 'selected';

/** A text in one style. The renderer escapes control characters in it. */
export type Span = string | { readonly text: string; readonly style: Style };
export type Line = Span | readonly Span[];

/** A cell of a table. `order` sorts texts that do not sort by themselves, such as ages and sizes. */
export type TableCell = Span | { readonly text: string; readonly style?: Style; readonly order: number };

export interface Column {
  readonly title: string;
  /** True if shown only with `-o wide`. */
  readonly wide?: boolean;
  /** True if never truncated, as for identifiers that people copy. */
  readonly whole?: boolean;
  readonly right?: boolean;
  /** Width down to which a whole column is cut when the row does not fit otherwise [default: it is not cut]. */
  readonly least?: number;
  /**
   * Order in which a narrow terminal gives up the columns that say least, 1 first, before it cuts the others short.
   * Absent for columns that stay as long as they fit.
   */
  readonly spare?: number;
}

export interface TableView {
  readonly kind: 'table';
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly TableCell[])[];
  /** Sentence that replaces an empty table. */
  readonly empty: string;
  /** False for a later page, which needs no titles. */
  readonly titles?: boolean;
  /** True if the operator chose the columns, so that none is dropped. */
  readonly chosen?: boolean;
}

export interface FieldsView {
  readonly kind: 'fields';
  readonly fields: readonly (readonly [label: string, value: Line])[];
}

export interface LinesView {
  readonly kind: 'lines';
  readonly lines: readonly Line[];
  /**
   * Columns by which the rest of a line that a terminal is too narrow for is indented. Absent for lines that are written as they
   * are, such as commands to copy and contents.
   */
  readonly hang?: number;
}

/** Views separated by empty lines. */
interface StackView {
  readonly kind: 'stack';
  readonly views: readonly View[];
}

/** A view below a heading. */
interface HeadedView {
  readonly kind: 'headed';
  readonly head: Line;
  readonly body: View;
}

export type View = TableView | FieldsView | LinesView | StackView | HeadedView;

/** Columns by which the rest of a sentence is indented. */
export const HANG = 2;

export const styled = (style: Style, text: string): Span => ({ text, style });
/** Lists whose length depends on data use the `…Of` forms, because a call takes at most about 125,000 arguments. */
export const linesOf = (all: readonly Line[]): LinesView => ({ kind: 'lines', lines: all });
/** Sentences, which are wrapped at the width of a terminal. */
export const proseOf = (all: readonly Line[], hang = HANG): LinesView => ({ kind: 'lines', lines: all, hang });
export const fieldsOf = (all: FieldsView['fields']): FieldsView => ({ kind: 'fields', fields: all });
export const stackOf = (views: readonly View[]): StackView => ({ kind: 'stack', views });

/** Sentences, as `proseOf` gives them. */
export const lines = (...all: readonly Line[]): LinesView => proseOf(all);
export const fields = (...all: FieldsView['fields']): FieldsView => fieldsOf(all);
export const stack = (...views: readonly View[]): StackView => stackOf(views);

export const headed = (head: string, body: View): HeadedView => ({
  kind: 'headed',
  head: styled('strong', head),
  body,
});

/** Splits a text into view lines; a trailing newline adds none. */
export function textLines(content: string, style?: Style): readonly Line[] {
  if (content === '') return [];
  const all = content.replace(/\r?\n$/, '').split(/\r?\n/);
  return style ? all.map((line) => styled(style, line)) : all;
}
