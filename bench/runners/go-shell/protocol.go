// Package shell turns a Go peer into a runner: it implements the protocol of ../PROTOCOL.md, splits the
// corpus, times the passes and sums up the counts. A runner implements only the calls of its libraries.
package shell

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

// Runner is the description of a peer and its tasks.
type Runner struct {
	// Engine names the libraries that do the work, with their versions.
	Engine string
	// Version is that of the peer itself.
	Version string
	// Tasks holds the variants of each task by name.
	Tasks map[string]map[string]Variant
}

// Variant is one variant of a task.
type Variant struct {
	// Checks lists what the measured path refuses, by the names of the protocol.
	Checks []string
	// Load reads the corpus and does none of the measured work.
	Load func(files []string) (Work, error)
}

// Work is a task with its corpus in memory.
type Work interface {
	Size() (units, bytes int)
	// Prove does the work once and counts the results.
	Prove() (Proof, error)
	// Pass does the same work once, uncounted, and returns the times of its stages, if any.
	Pass() (Stages, error)
}

// Proof is the result of the work.
type Proof struct {
	// Counts is a map by the names of the protocol, of whole numbers or, where the task says so, texts.
	Counts any `json:"counts"`
	// Reason is the peer's own reason for a refusal, in the task `hostile`.
	Reason string `json:"reason,omitempty"`
}

// Stages holds the nanoseconds of each stage of a pass.
type Stages map[string]int64

// Run answers requests until standard input ends.
func Run(runner Runner) {
	if err := serve(runner, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(runner Runner, requests io.Reader, answers io.Writer) error {
	session := session{runner: runner}
	in, out := bufio.NewReader(requests), json.NewEncoder(answers)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err := out.Encode(session.answer(line)); err != nil {
			return err
		}
	}
}

type session struct {
	runner Runner
	work   Work // nil until something is loaded
}

type request struct {
	Cmd, Task, Variant string
	Files              []string
}

type object map[string]any

func (s *session) answer(line []byte) any {
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return failure(err)
	}
	answer, err := s.obey(asked)
	if err != nil {
		return failure(err)
	}
	return answer
}

func (s *session) obey(asked request) (any, error) {
	switch {
	case asked.Cmd == "describe":
		return s.describe(), nil
	case asked.Cmd == "load":
		return s.load(asked)
	case asked.Cmd != "prove" && asked.Cmd != "pass":
		return nil, fmt.Errorf("unknown request %q", asked.Cmd)
	case s.work == nil:
		return nil, errors.New("nothing is loaded")
	case asked.Cmd == "prove":
		return s.work.Prove()
	default:
		return s.pass()
	}
}

func (s *session) describe() object {
	tasks := make(map[string]map[string][]string)
	for task, variants := range s.runner.Tasks {
		tasks[task] = make(map[string][]string)
		for name, variant := range variants {
			tasks[task][name] = append([]string{}, variant.Checks...)
		}
	}
	return object{"engine": s.runner.Engine, "version": s.runner.Version, "language": "go", "tasks": tasks}
}

func (s *session) load(asked request) (object, error) {
	variant, known := s.runner.Tasks[asked.Task][asked.Variant]
	if !known {
		return nil, fmt.Errorf("no variant %q of task %q here", asked.Variant, asked.Task)
	}
	work, err := variant.Load(asked.Files)
	if err != nil {
		return nil, err
	}
	s.work = work
	units, bytes := work.Size()
	return object{"units": units, "bytes": bytes}, nil
}

// pass starts from a collected heap, so that no pass pays for the garbage of the previous one. The
// garbage of the pass itself is collected while it works, as in any Go program.
func (s *session) pass() (object, error) {
	runtime.GC()
	start := time.Now()
	stages, err := s.work.Pass()
	answer := object{"ns": time.Since(start).Nanoseconds()}
	if stages != nil {
		answer["stages_ns"] = stages
	}
	return answer, err
}

func failure(err error) object {
	return object{"error": err.Error()}
}
