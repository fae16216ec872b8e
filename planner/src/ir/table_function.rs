//! Making relations of set-returning functions.

use super::{Node, Rel};
use plan::table_function::TableFunction;
use plan::types::{Column, Type};

impl Rel {
    /// What the functions make of each row, their columns under these names.
    pub fn table_function(self, table_function: TableFunction, names: Vec<String>) -> Rel {
        let types: Vec<Type> = self.columns.iter().map(|column| column.ty).collect();
        let own = table_function.columns(&types).into_iter().zip(names);
        let own = own.map(|((ty, nullable), name)| Column { name, ty, typmod: -1, nullable });
        let columns = self.columns.iter().cloned().chain(own).collect();
        Rel { columns, node: Node::TableFunction { input: Box::new(self), table_function } }
    }
}
