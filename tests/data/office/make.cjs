// Makes the office files of the tests with other programs' writers; run it in this folder.  (plan.xlsx is by openpyxl.)
//   npm install exceljs docx pptxgenjs xlsx pdfkit && node make.cjs
const fs=require('fs');const E=require('exceljs');const D=require('docx');const P=require('pptxgenjs');const X=require('xlsx');const K=require('pdfkit');
(async()=>{
 const wb=new E.Workbook(); const s=wb.addWorksheet('Sales'); s.addRow(['Name','Sold','When','Ok','Share']);
 s.addRow(['Äpfel & <Birnen>',12,new Date(Date.UTC(2024,1,29)),true,0.25]); s.addRow(['Kirschen',3.5,new Date(Date.UTC(1999,11,31,23,59,30)),false,{formula:'B2/B3',result:3.4285714285714284}]);
 s.addRow([]); s.addRow([{richText:[{text:'rich '},{font:{bold:true},text:'text'}]},null,null,null,'last']);
 const t=wb.addWorksheet('Second sheet'); t.getCell('C3').value='alone'; await wb.xlsx.writeFile('./sales.xlsx');
 X.writeFile(X.utils.book_append_sheet? (()=>{const b=X.utils.book_new();X.utils.book_append_sheet(b,X.utils.aoa_to_sheet([['a','b'],[1,'x'],[2.5,'y & z']]),'Data');return b})():null,'./plain.xlsx');
 const d=new D.Document({sections:[{children:[new D.Paragraph({text:'Annual report',heading:D.HeadingLevel.HEADING_1}),new D.Paragraph({children:[new D.TextRun('Plain '),new D.TextRun({text:'bold',bold:true}),new D.TextRun(' & <odd>')]}),new D.Paragraph({text:'first point',bullet:{level:0}}),new D.Table({rows:[new D.TableRow({children:[new D.TableCell({children:[new D.Paragraph('City')]}),new D.TableCell({children:[new D.Paragraph('People')]})]}),new D.TableRow({children:[new D.TableCell({children:[new D.Paragraph('Bern')]}),new D.TableCell({children:[new D.Paragraph('134'),new D.Paragraph('thousand')]})]})]}),new D.Paragraph('The end.')]}]});
 fs.writeFileSync('./report.docx',await D.Packer.toBuffer(d));
 const p=new P(); let sl=p.addSlide(); sl.addText('Welcome & hello',{x:1,y:1,w:5,h:1}); sl.addNotes('say it slowly'); sl=p.addSlide(); sl.addText([{text:'one',options:{breakLine:true}},{text:'two'}],{x:1,y:1,w:5,h:1}); sl.addTable([['k','v'],['a','1']],{x:1,y:2,w:5}); await p.writeFile({fileName:'./talk.pptx'});
 const k=new K(); k.pipe(fs.createWriteStream('./paper.pdf')); k.text('First page: 42 joules.'); k.addPage(); k.text('Second page.'); k.end();
})()
