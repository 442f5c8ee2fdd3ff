package main

import (
	"math"
	"sort"

	"github.com/anishathalye/porcupine"
)

// nothing is the value of a register that was never written. A mutex is 1 while it is taken.
const nothing = -1

type operation struct {
	Client  int    `json:"client"`
	Call    int64  `json:"call"`
	Return  int64  `json:"return"`
	F       string `json:"f"`
	Key     string `json:"key"`
	Old     int    `json:"old"`
	New     int    `json:"new"`
	Read    int    `json:"read"`
	Text    string `json:"text"`
	Unknown bool   `json:"unknown"`
}

type history struct {
	Workload   string      `json:"workload"`
	Operations []operation `json:"operations"`
}

func (asked history) calls() []porcupine.Operation {
	calls := make([]porcupine.Operation, 0, len(asked.Operations))
	for number := range asked.Operations {
		calls = append(calls, asked.Operations[number].call())
	}
	return calls
}

func (op *operation) call() porcupine.Operation {
	end := op.Return
	if op.Unknown {
		end = math.MaxInt64
	}
	return porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Output: nil, Return: end}
}

func stepNumber(state, input, _ any) (bool, any) {
	value, op := state.(int), input.(*operation)
	switch op.F {
	case "write":
		return true, op.New
	case "read":
		return op.Unknown || op.Read == value, value
	case "cas":
		if value == op.Old {
			return true, op.New
		}
		return op.Unknown, value
	case "acquire":
		if value == 0 {
			return true, 1
		}
		return op.Unknown, value
	case "release":
		if value == 1 {
			return true, 0
		}
		return op.Unknown, value
	}
	panic("no such function: " + op.F)
}

func stepText(state, input, _ any) (bool, any) {
	text, op := state.(string), input.(*operation)
	switch op.F {
	case "put":
		return true, op.Text
	case "append":
		return true, text + op.Text
	case "get":
		return op.Unknown || op.Text == text, text
	}
	panic("no such function: " + op.F)
}

// byKey cuts a history into those of its keys, so that Porcupine checks them apart and in parallel.
func byKey(calls []porcupine.Operation) [][]porcupine.Operation {
	parts := map[string][]porcupine.Operation{}
	for _, call := range calls {
		key := call.Input.(*operation).Key
		parts[key] = append(parts[key], call)
	}
	keys := make([]string, 0, len(parts))
	for key := range parts {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	cut := make([][]porcupine.Operation, 0, len(keys))
	for _, key := range keys {
		cut = append(cut, parts[key])
	}
	return cut
}

func modelOf(workload string) porcupine.Model {
	model := porcupine.Model{Partition: byKey, Step: stepNumber, Init: func() any { return nothing }}
	switch workload {
	case "register", "cas-register":
	case "mutex":
		model.Init = func() any { return 0 }
	case "key-value":
		model.Step, model.Init = stepText, func() any { return "" }
	default:
		panic("no such workload: " + workload)
	}
	return model
}
