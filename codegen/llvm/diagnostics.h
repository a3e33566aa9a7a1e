// SPDX-License-Identifier: Apache-2.0
// Collects LLVM's error messages about a module for our Status. LLVM's own handler prints them and ends the process at
// an error.
#ifndef QUERN_CODEGEN_LLVM_DIAGNOSTICS_H_
#define QUERN_CODEGEN_LLVM_DIAGNOSTICS_H_

#include <string>

#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/raw_ostream.h"

namespace quern {

// The handler of all our contexts. Collects errors and drops the rest.
class Diagnostics : public llvm::DiagnosticHandler {
 public:
  bool handleDiagnostics(const llvm::DiagnosticInfo& diagnostic) override {
    if (diagnostic.getSeverity() != llvm::DS_Error) return true;
    llvm::raw_string_ostream stream(errors_);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    if (!errors_.empty()) stream << ", ";
    diagnostic.print(printer);
    return true;
  }

  // Empty if there were none. `context` must have such a handler.
  static const std::string& ErrorsOf(const llvm::LLVMContext& context) {
    return static_cast<const Diagnostics*>(context.getDiagHandlerPtr())->errors_;
  }

 private:
  std::string errors_;
};

}  // namespace quern

#endif  // QUERN_CODEGEN_LLVM_DIAGNOSTICS_H_
