package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// entry returns the text between the name of an entry and a terminator; "" without the entry.
func entry(line, name, terminator string) string {
	_, rest, isThere := strings.Cut(line, name)
	if !isThere {
		return ""
	}
	value, _, _ := strings.Cut(rest, terminator)
	return value
}

func number(text string) (int, error) {
	if text == "nil" {
		return nothing, nil
	}
	return strconv.Atoi(text)
}

// fill states the key and the values of an operation, which are written as [key value] or [key [old new]].
func (op *operation) fill(text string) error {
	key, rest, isKeyed := strings.Cut(strings.TrimPrefix(text, "["), " ")
	if !isKeyed {
		return fmt.Errorf("expected [key value], got %s", text)
	}
	op.Key = key
	value := strings.TrimSuffix(rest, "]")
	var err error
	if op.F == "cas" {
		old, new, _ := strings.Cut(strings.Trim(value, "[]"), " ")
		if op.Old, err = strconv.Atoi(old); err != nil {
			return err
		}
		op.New, err = strconv.Atoi(new)
		return err
	}
	op.New, err = number(value)
	op.Read = op.New
	return err
}

// readHistory returns the operations of a file in the order of their calls. Times are numbers of lines.
func readHistory(path string) ([]porcupine.Operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 1<<20), 1<<24)
	underWay := map[int]*operation{}
	begun := []*operation{}
	hasFailed := map[*operation]bool{}
	for at := int64(0); lines.Scan(); at++ {
		line := lines.Text()
		process, err := strconv.Atoi(entry(line, ":process ", ","))
		if err != nil {
			return nil, err
		}
		kind := entry(line, ":type :", ",")
		if kind == "invoke" {
			op := &operation{Client: process, Call: at, Return: math.MaxInt64, Unknown: true}
			op.F = entry(line, ":f :", ",")
			if err := op.fill(entry(line, ":value ", ",")); err != nil {
				return nil, err
			}
			underWay[process] = op
			begun = append(begun, op)
			continue
		}
		op := underWay[process]
		delete(underWay, process)
		switch kind {
		case "fail":
			hasFailed[op] = true
		case "ok":
			op.Return, op.Unknown = at, false
			if err := op.fill(entry(line, ":value ", ",")); err != nil {
				return nil, err
			}
		}
	}
	calls := make([]porcupine.Operation, 0, len(begun))
	for _, op := range begun {
		if !hasFailed[op] && !(op.Unknown && op.F == "read") {
			calls = append(calls, op.call())
		}
	}
	return calls, lines.Err()
}
