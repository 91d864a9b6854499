// Package report shows the results of load tests to people and programs.
// A result is turned into one document, which Text, Markdown and HTML render each
// in its way, so that all three say the same; JSON and CSV are for programs. What
// is not known is shown as a dash, or left empty in CSV, and never as 0. Whatever
// came from outside (model names, ids, notes, versions) is neutralised for the
// format it is written to.
package report
