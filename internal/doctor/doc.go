// Package doctor checks an endpoint as an expert would.
//
// Run looks at the address, the way to it, the key, the models, a few short
// answers and the engine's own figures, and at a gateway of ours if there is
// one. Each check ends in one Finding that says how things stand, why, and what
// to do next. A check that could only repeat the fault of an earlier one is not
// made, and says so. Prompts are fixed and harmless; answers and keys are never
// part of a finding.
package doctor
